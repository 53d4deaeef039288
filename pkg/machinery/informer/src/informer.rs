//! [`Informer`]: the handle that controllers hold, and what it shares with its loop.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use model::Cached;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::Delta;
use crate::metrics::{Counters, InformerMetrics, Probe, Sample};
use crate::reflector::Reflector;
use crate::store::Store;

/// How often a wait for the first list is logged (`host.md` 11).
const STILL_WAITING: Duration = Duration::from_secs(10);

/// A shared copy of all objects of one type; clones share it. See the crate for its promises.
pub struct Informer<T: Cached> {
    shared: Arc<Shared<T>>,
}

impl<T: Cached> Clone for Informer<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// What the handle and the loop both touch.
pub(crate) struct Shared<T> {
    pub(crate) client: Client,
    pub(crate) metrics: Counters,
    pub(crate) store: Store<T>,
    /// The newest version that any applied list, event or bookmark had.
    version: AtomicU64,
    synced: watch::Sender<bool>,
    born: Instant,
    /// Milliseconds from `born` to the server's last word.
    last_word: AtomicU64,
}

impl<T: Cached> Informer<T> {
    /// An empty informer that does nothing until [`Informer::run`].
    ///
    /// Its requests must not wait behind others: a watch that is not answered within 30 s counts
    /// as failed, and the time in a throttle counts too.
    pub fn new(client: Client, metrics: InformerMetrics) -> Self {
        let shared = Arc::new(Shared {
            client,
            metrics: metrics.of_resource(T::RESOURCE),
            store: Store::new(),
            version: AtomicU64::new(0),
            synced: watch::Sender::new(false),
            born: Instant::now(),
            last_word: AtomicU64::new(0),
        });
        let probe = Arc::downgrade(&shared);
        metrics.watch(probe);
        Self { shared }
    }

    /// Calls the handler for everything in the store, then for every change, in order.
    ///
    /// The handler runs in the informer's task while it delivers: it must return at once and not
    /// panic. It may call [`Informer::get`] and [`Informer::len`]; [`Informer::subscribe`] and
    /// [`Informer::frozen`] would wait for itself.
    pub fn subscribe(&self, handler: impl Fn(Delta<'_, T>) + Send + Sync + 'static) {
        self.shared.store.subscribe(Box::new(handler));
    }

    /// The newest known copy of an object, by name or `namespace/name`.
    pub fn get(&self, key: &str) -> Option<Arc<T>> {
        self.shared.store.get(key)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.shared.store.len()
    }

    /// True when there is no object, or none is known yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the whole store while nothing changes and no delta is delivered: everything in it
    /// has been told to every handler, and nothing else has. Deliveries wait meanwhile.
    pub fn frozen<R>(&self, read: impl FnOnce(&HashMap<Arc<str>, Arc<T>>) -> R) -> R {
        self.shared.store.frozen(read)
    }

    /// The first list has been delivered to every handler. Stays true from then on.
    pub fn is_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits until [`Informer::is_synced`].
    pub async fn synced(&self) {
        let mut synced = self.shared.synced.subscribe();
        // Fails only when the sender is gone, which lives as long as `self`.
        drop(synced.wait_for(|synced| *synced).await);
    }

    /// Time since the server last said anything that was believed: an event, a bookmark (about
    /// one a minute), or a list. Before the first of them, the age of the informer.
    pub fn silent_for(&self) -> Duration {
        self.shared.silent_for()
    }

    /// Lists and watches until `stop`. Call it once, in a task of its own.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            never = Reflector::new(Arc::clone(&self.shared)).run() => match never {},
            () = self.log_sync() => {}
        }
    }

    /// Logs the wait for the first list and its end; then never returns.
    async fn log_sync(&self) {
        let (started, resource) = (Instant::now(), T::RESOURCE);
        while timeout(STILL_WAITING, self.synced()).await.is_err() {
            let waited = started.elapsed();
            info!(logger = "informer", resource, ?waited, "Waiting for caches to sync");
        }
        let (took, objects) = (started.elapsed(), self.len());
        info!(v = 2, logger = "informer", resource, objects, ?took, "Caches populated");
        std::future::pending::<()>().await;
    }
}

impl<T: Cached> Shared<T> {
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Notes a word of the server that was believed.
    pub(crate) fn advance(&self, version: u64) {
        self.version.fetch_max(version, Ordering::Relaxed);
        let age = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_word.store(age, Ordering::Relaxed);
    }

    pub(crate) fn set_synced(&self) {
        self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
    }

    fn silent_for(&self) -> Duration {
        let last = Duration::from_millis(self.last_word.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(last)
    }
}

impl<T: Cached> Probe for Shared<T> {
    fn sample(&self) -> Sample {
        Sample {
            labels: [T::GROUP, T::VERSION, T::RESOURCE],
            objects: self.store.len(),
            synced: *self.synced.borrow(),
            silent: self.silent_for(),
            version: self.version(),
        }
    }
}

#[cfg(test)]
mod tests;
