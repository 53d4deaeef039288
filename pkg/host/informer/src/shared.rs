//! [`Shared`]: the state that the handles of an informer and its loop share, but for the objects.
//! [`Unreadables`] are the objects that could not be decoded, each logged once.

use std::collections::HashSet;
use std::error::Error;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use kube_api::Resource;
use parking_lot::Mutex;
use prometheus::IntCounter;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::metrics::{Absences, Counters, InformerMetrics};
use crate::progress::PublishedProgress;
use crate::request::Format;
use crate::source::{FirstList, Source};

pub(crate) struct Shared {
    pub(crate) source: Source,
    pub(crate) format: Format,
    /// The kind's name in metrics and logs.
    pub(crate) resource: Arc<str>,
    pub(crate) metrics: Counters,
    pub(crate) absences: Absences,
    pub(crate) unreadables: Unreadables,
    pub(crate) progress: PublishedProgress,
    /// Wakes the loop when somebody demands a list.
    pub(crate) demanded: Notify,
    demanded_since: Mutex<Option<Instant>>,
    /// See [`Shared::seek`].
    sought: AtomicU64,
    /// The object that a strict collection waits for.
    blocked: Mutex<Option<String>>,
    /// The message of the server when it last refused a list or watch because of a missing right.
    denied: Mutex<Option<String>>,
    /// Where the server keeps the kind, as far as that is known.
    served: Mutex<Option<Resource>>,
    /// See [`crate::doubt`].
    doubted: AtomicBool,
    born: Instant,
    /// Milliseconds from `born` to the server's last word.
    last_word: AtomicU64,
}

impl Shared {
    pub(crate) fn new(source: Source, metrics: &InformerMetrics, format: Format) -> Self {
        let resource: Arc<str> = source.kind.to_string().into();
        Self {
            format,
            metrics: metrics.of_resource(&resource, &source.kind),
            absences: metrics.absences(),
            unreadables: Unreadables::default(),
            progress: PublishedProgress::default(),
            demanded: Notify::new(),
            demanded_since: Mutex::default(),
            sought: AtomicU64::new(0),
            blocked: Mutex::default(),
            denied: Mutex::default(),
            served: Mutex::default(),
            doubted: AtomicBool::new(false),
            born: Instant::now(),
            last_word: AtomicU64::new(0),
            resource,
            source,
        }
    }

    pub(crate) fn client(&self) -> &Client {
        self.source.server.client()
    }

    pub(crate) fn version(&self) -> u64 {
        self.progress.now().version
    }

    /// Notes a word of the server that was believed.
    pub(crate) fn advance(&self, version: u64) {
        self.heard();
        self.progress.change(|progress| progress.version = progress.version.max(version));
    }

    pub(crate) fn heard(&self) {
        let age = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_word.store(age, Ordering::Relaxed);
    }

    /// A list that was begun at that time has been taken in.
    pub(crate) fn note_list(&self, version: u64, begun: Instant, truth: FirstList) {
        self.blocked.lock().take();
        self.heard();
        self.progress.change(|progress| {
            progress.version = progress.version.max(version);
            progress.note_list(begun, truth);
        });
    }

    /// A list of another history has been taken in (rule:history-that-goes-back).
    pub(crate) fn note_restart(&self, version: u64, begun: Instant) {
        self.blocked.lock().take();
        self.heard();
        self.progress.change(|progress| {
            progress.version = version;
            progress.history += 1;
            progress.note_list(begun, FirstList::Consistent);
        });
    }

    /// Waits until a list that was begun at or after `since` has been taken in; any list if that is
    /// `None`.
    pub(crate) async fn listed(&self, since: Option<Instant>) {
        self.progress.wait_for(|progress| progress.has_list(since)).await;
    }

    pub(crate) fn set_doubted(&self, doubted: bool) {
        self.doubted.store(doubted, Ordering::Release);
    }

    pub(crate) fn is_doubted(&self) -> bool {
        self.doubted.load(Ordering::Acquire)
    }

    /// The server may have been replaced by another one, with another history, since the last word.
    pub(crate) fn note_break(&self) {
        self.progress.change(|progress| {
            progress.broken.get_or_insert_with(Instant::now);
        });
    }

    /// Has the watch opened again, for a short time at once, until it has got as far as `version`; zero
    /// for no longer.
    pub(crate) fn seek(&self, version: u64) {
        self.sought.store(version, Ordering::Release);
        self.demanded.notify_one();
    }

    /// True while a version is sought that has not been reached.
    pub(crate) fn is_seeking(&self) -> bool {
        self.sought.load(Ordering::Acquire) > self.version()
    }

    pub(crate) fn set_dormant(&self, dormant: bool) {
        self.heard();
        self.progress.change(|progress| progress.dormant = dormant);
    }

    pub(crate) fn set_blocked(&self, by: String) {
        *self.blocked.lock() = Some(by);
    }

    pub(crate) fn blocked(&self) -> Option<String> {
        self.blocked.lock().clone()
    }

    pub(crate) fn set_denied(&self, denied: Option<String>) {
        let before = mem::replace(&mut *self.denied.lock(), denied);
        if before != self.denied() {
            // Who waits for either looks again.
            self.progress.change(|_| {});
        }
    }

    pub(crate) fn denied(&self) -> Option<String> {
        self.denied.lock().clone()
    }

    pub(crate) fn set_served(&self, resource: Resource) {
        *self.served.lock() = Some(resource);
    }

    pub(crate) fn served(&self) -> Option<Resource> {
        self.served.lock().clone()
    }

    /// Has a consistent list made that begins at or after `since`, unless one was applied.
    pub(crate) fn demand_list(&self, since: Instant) {
        if self.progress.now().has_list(Some(since)) {
            return;
        }
        let mut demanded = self.demanded_since.lock();
        *demanded = (*demanded).max(Some(since));
        self.demanded.notify_one();
    }

    /// True while a list is demanded that has not been applied.
    pub(crate) fn is_list_demanded(&self) -> bool {
        let demanded = *self.demanded_since.lock();
        demanded.is_some() && !self.progress.now().has_list(demanded)
    }

    pub(crate) fn silent_for(&self) -> Duration {
        let last = Duration::from_millis(self.last_word.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(last)
    }
}

/// An object that cannot be read, but for its identity.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) key: Arc<str>,
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) cause: Box<dyn Error + Send + Sync>,
}

/// The keys that have been named.
#[derive(Default)]
pub(crate) struct Unreadables(Mutex<HashSet<Arc<str>>>);

impl Unreadables {
    pub(crate) fn note(&self, resource: &str, undecodable: &IntCounter, object: &Unreadable) {
        undecodable.inc();
        let Unreadable { key, cause, .. } = object;
        if self.0.lock().insert(Arc::clone(key)) {
            warn!(logger = "informer", resource, object = %key, error = %cause,
                "Object cannot be read and is skipped; its last good copy stays in use");
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The object can be read, or is gone.
    pub(crate) fn clear(&self, resource: &str, key: &str) {
        let mut named = self.0.lock();
        if !named.is_empty() && named.remove(key) {
            log_cleared(resource, key);
        }
    }

    /// A list has no other objects that cannot be read.
    pub(crate) fn retain(&self, resource: &str, listed: &HashSet<Arc<str>>) {
        self.0.lock().retain(|key| {
            let stays = listed.contains(key);
            if !stays {
                log_cleared(resource, key);
            }
            stays
        });
    }

    #[cfg(test)]
    pub(crate) fn named(&self) -> Vec<Arc<str>> {
        self.0.lock().iter().cloned().collect()
    }
}

fn log_cleared(resource: &str, object: &str) {
    info!(logger = "informer", resource, object, "Object can be read again, or is gone");
}
