//! Runs an informer while its kind is served. A custom kind that is not served, or whose CRD is not
//! labelled as ours, leaves it dormant and healthy (rule:absent-kinds-are-dormant).

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kube_api::{Cached, Kind, Metadata, Resource};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::discovery;
use crate::fault::{Fault, after_failures};
use crate::informer::{Informer, Subscription};
use crate::intake::Intake;
use crate::reflector::Reflector;
use crate::request::Collection;
use crate::shared::Shared;
use crate::source::{MANAGED_BY, Source};
use crate::subscribers::Session;

/// How soon a kind is looked for again whose CRD is there: the server begins to serve it within
/// moments. Doubled up to [`SELDOM`].
const SOON: Duration = Duration::from_millis(100);
/// How often a kind without a CRD is looked for.
const SELDOM: Duration = Duration::from_secs(30);

/// Why a kind is not for us.
const NO_CRD: &str = "it has no CRD with the label app.kubernetes.io/managed-by of this program; \
                      apply one with deploy/crds or --install-crds";

async fn list_and_watch(cache: &dyn Intake, crds: Option<Informer<Metadata>>) -> Infallible {
    if let Kind::BuiltIn(resource) = &cache.shared().source.kind {
        loop {
            follow(cache, resource).await;
        }
    }
    let mut followed = None;
    let Some(crds) = crds else { return while_served(cache, None, &mut followed).await };
    loop {
        let session = Session::new();
        let crds = Crds::watch(crds.in_session(session.clone()));
        tokio::select! {
            biased;
            never = while_served(cache, Some(&crds), &mut followed) => match never {},
            // The history of the CRDs went back.
            _ = session.ended() => {}
        }
    }
}

/// Returns when the server does not know the collection.
async fn follow(cache: &dyn Intake, resource: &Resource) {
    let shared = cache.shared();
    shared.set_served(resource.clone());
    let accept = cache.accept(shared.format);
    let collection = Collection::new(&shared.source, resource, accept);
    Reflector::new(cache, collection).run().await;
}

/// Whether a kind is served.
enum Presence {
    /// Served, and ours; with the CRD that says so, if there is one.
    Here(Resource, Option<Arc<Metadata>>),
    /// The kind is not served, although its CRD may exist.
    NotServed,
    /// The CRD that was followed is gone.
    Lost,
    /// The kind has no CRD that is labelled as ours, as far as this process may read.
    NotOurs(&'static str),
}

/// Waits until the kind is served, and for us.
async fn until_served(cache: &dyn Intake, crds: Informer<Metadata>) {
    loop {
        let session = Session::new();
        let crds = Crds::watch(crds.in_session(session.clone()));
        tokio::select! {
            biased;
            _ = here(cache, Some(&crds), Followed::default()) => return,
            // The history of the CRDs went back.
            _ = session.ended() => {}
        }
    }
}

/// The CRD that the store's objects are of.
#[derive(Clone, Copy, Default)]
struct Followed<'a> {
    key: Option<&'a str>,
    /// The CRD is known to be gone.
    is_gone: bool,
}

/// `followed` is the key of the CRD that the store's objects are of.
async fn while_served(
    cache: &dyn Intake,
    crds: Option<&Crds>,
    followed: &mut Option<Arc<str>>,
) -> Infallible {
    let mut pauses = Pauses::new();
    loop {
        let known = Followed { key: followed.as_deref(), is_gone: false };
        let (served, crd) = here(cache, crds, known).await;
        *followed = crd.as_ref().map(|crd| Arc::clone(&crd.key));
        let begun = Instant::now();
        tokio::select! {
            biased;
            () = follow(cache, &served) => {
                if begun.elapsed() > SELDOM {
                    pauses = Pauses::new();
                }
                // The server tells that it serves what it does not know.
                pauses.pause(crds).await;
            }
            () = gone(crds, crd.as_deref(), &cache.shared().source) => pauses = Pauses::new(),
        }
    }
}

/// Waits until the kind is here; where it is served, and its CRD, if there is one.
async fn here(
    cache: &dyn Intake,
    crds: Option<&Crds>,
    mut followed: Followed<'_>,
) -> (Resource, Option<Arc<Metadata>>) {
    let shared = cache.shared();
    let resource = &*shared.resource;
    let mut pauses = Pauses::new();
    loop {
        match look(shared, crds, followed).await {
            Presence::Here(served, crd) => {
                if shared.absences.end(&shared.source) {
                    let version = &*served.version;
                    info!(logger = "informer", resource, version, "Kind is served");
                }
                shared.set_dormant(false);
                return (served, crd);
            }
            Presence::Lost => {
                set_dormant(shared, "its CRD was deleted");
                // Its CRD took the objects along.
                cache.clear();
                shared.unreadables.retain(resource, &HashSet::new());
                followed.is_gone = true;
                pauses = Pauses::new();
                changed(crds, SELDOM).await;
            }
            Presence::NotOurs(reason) => {
                set_dormant(shared, reason);
                // The objects still exist, so no deletion is delivered.
                cache.abandon(&format!(
                    "the CRD of {resource} no longer has the label {MANAGED_BY} of this program"
                ));
                pauses = Pauses::new();
                changed(crds, SELDOM).await;
            }
            Presence::NotServed => {
                set_dormant(shared, "the API server does not serve it");
                // Its objects stay: one server of several may not know the kind yet.
                pauses.pause(crds).await;
            }
        }
    }
}

fn set_dormant(shared: &Shared, reason: &str) {
    if shared.absences.begin(&shared.source) {
        let resource = &*shared.resource;
        info!(logger = "informer", resource, reason, "Kind is dormant until it is served");
    }
    shared.set_dormant(true);
}

/// Looks until the server answers.
async fn look(shared: &Shared, crds: Option<&Crds>, followed: Followed<'_>) -> Presence {
    let mut backoff = after_failures();
    loop {
        let seen = match crds {
            None => None,
            Some(crds) => match crds.see(&shared.source, followed).await {
                Ok(seen) => seen.then_some(crds),
                Err(absent) => return absent,
            },
        };
        match find(shared, seen, followed).await {
            Ok(presence) => return presence,
            Err(fault) => {
                let (resource, wait) =
                    (&*shared.resource, backoff.fail(Instant::now()).max(fault.retry_after()));
                warn!(logger = "informer", resource, error = %fault, ?wait,
                    "Cannot find the API that serves the kind");
                sleep(wait).await;
            }
        }
    }
}

async fn find(
    shared: &Shared,
    crds: Option<&Crds>,
    followed: Followed<'_>,
) -> Result<Presence, Fault> {
    let Some(served) = discovery::find(shared.client(), &shared.source.kind).await? else {
        return Ok(Presence::NotServed);
    };
    let Some(crds) = crds else { return Ok(Presence::Here(served, None)) };
    let key = format!("{}.{}", served.plural, served.group);
    Ok(match (crds.informer.get(&key), &shared.source.managed_by) {
        (Some(crd), _) if is_ours(&crd, &shared.source) => Presence::Here(served, Some(crd)),
        // The server may go on serving a kind for a moment after its CRD is gone.
        (None, _) if followed.is_gone && followed.key == Some(&*key) => Presence::Lost,
        // Built in, or served by an aggregated API server.
        (None, None) => Presence::Here(served, None),
        _ => Presence::NotOurs(NO_CRD),
    })
}

/// Waits until the CRD is another one, is not ours, or is not there.
async fn gone(crds: Option<&Crds>, crd: Option<&Metadata>, source: &Source) {
    let (Some(crds), Some(crd)) = (crds, crd) else { return std::future::pending().await };
    loop {
        match crds.informer.get(&crd.key) {
            Some(now) if now.uid == crd.uid && is_ours(&now, source) => {}
            _ => return,
        }
        crds.changed.notified().await;
    }
}

/// Waits for a change of any CRD, at most so long; true when there was one.
async fn changed(crds: Option<&Crds>, at_most: Duration) -> bool {
    let Some(crds) = crds else {
        sleep(at_most).await;
        return false;
    };
    timeout(at_most, crds.changed.notified()).await.is_ok()
}

/// Waits between looks for a kind with a CRD: longer each time, unless a CRD changes.
struct Pauses(Duration);

impl Pauses {
    fn new() -> Self {
        Self(SOON)
    }

    async fn pause(&mut self, crds: Option<&Crds>) {
        let news = changed(crds, self.0).await;
        self.0 = if news { SOON } else { (self.0 * 2).min(SELDOM) };
    }
}

fn is_ours(crd: &Metadata, source: &Source) -> bool {
    let label = crd.labels.get(MANAGED_BY);
    source.managed_by.as_ref().is_none_or(|ours| label.is_some_and(|label| **label == **ours))
}

/// The CRDs of the server.
struct Crds {
    informer: Informer<Metadata>,
    changed: Arc<Notify>,
    _subscription: Subscription<Metadata>,
}

impl Crds {
    fn watch(informer: Informer<Metadata>) -> Self {
        let changed = Arc::new(Notify::new());
        let told = Arc::clone(&changed);
        let subscription = informer.subscribe(move |_| told.notify_one());
        Self { informer, changed, _subscription: subscription }
    }

    /// Waits until the CRDs are known, or are known not to be shown to us: then false, or for who
    /// wants them to be ours the kind's absence (`rule:absent-kinds-are-dormant`).
    async fn see(&self, source: &Source, followed: Followed<'_>) -> Result<bool, Presence> {
        self.informer.synced_or_denied().await;
        if !self.informer.is_synced() {
            return match source.managed_by {
                Some(_) => Err(Presence::NotOurs("the permission to read its CRD is missing")),
                None => Ok(false),
            };
        }
        let is_lost = |key| !followed.is_gone && self.informer.get(key).is_none();
        if followed.key.is_some_and(is_lost) {
            return Err(Presence::Lost);
        }
        if self.may_have(source) { Ok(true) } else { Err(Presence::NotOurs(NO_CRD)) }
    }

    /// False when no CRD of the group can be the one that is wanted.
    fn may_have(&self, source: &Source) -> bool {
        if source.managed_by.is_none() {
            return true;
        }
        let group = source.kind.group();
        self.informer.frozen(|crds| {
            crds.values().any(|crd| {
                let of_group = crd.key.split_once('.').is_some_and(|(_, found)| found == group);
                of_group && is_ours(crd, source)
            })
        })
    }
}

/// How often a wait for the first list is logged.
const STILL_WAITING: Duration = Duration::from_secs(10);

impl<T: Cached> Informer<T> {
    /// Lists and watches until `stop`. Called once, in a task of its own.
    pub async fn run(&self, stop: CancellationToken) {
        run(self.cache.clone(), None, stop).await;
    }

    /// Lists and watches a kind that may not be served, until `stop`. The informer is dormant while
    /// `crds`, an informer of [`Source::crds`], shows that the kind is not served.
    pub async fn run_while_served(&self, crds: Informer<Metadata>, stop: CancellationToken) {
        run(self.cache.clone(), Some(crds), stop).await;
    }

    /// Waits until the kind is served, and for us, as `crds` tell, and lists none of its objects:
    /// for an informer that is not run.
    pub async fn until_served(&self, crds: Informer<Metadata>) {
        until_served(&*self.cache, crds).await;
    }
}

/// Runs an informer of any type; boxed, so that no crate gets a copy of its own.
fn run(
    cache: Arc<dyn Intake>,
    crds: Option<Informer<Metadata>>,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            never = list_and_watch(&*cache, crds) => match never {},
            () = log_sync(&*cache) => {}
        }
    })
}

/// Logs the wait for the first list and its end; then never returns.
async fn log_sync(cache: &dyn Intake) {
    let (started, shared) = (Instant::now(), cache.shared());
    let resource = &*shared.resource;
    while timeout(STILL_WAITING, shared.listed(None)).await.is_err() {
        // Who is refused says so in other words.
        if !shared.progress.now().dormant && shared.denied().is_none() {
            let waited = started.elapsed();
            info!(logger = "informer", resource, ?waited, "Waiting for caches to sync");
        }
    }
    let (took, objects) = (started.elapsed(), cache.len());
    info!(v = 2, logger = "informer", resource, objects, ?took, "Caches populated");
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests;
