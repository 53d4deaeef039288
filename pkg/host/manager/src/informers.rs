//! [`Informers`]: one informer per source for all controllers of the process.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use informer::{Format, Informer, InformerMetrics, MANAGED_BY, Server, Session, Source};
use kube_api::{Cached, Kind, Metadata, Resource, StaticKind};
use parking_lot::Mutex;
use resilience::panics::contain;
use resilience::task;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::error;

/// A watch that hears nothing for this long, bookmarks included, is dead.
const SILENCE: Duration = Duration::from_secs(15 * 60);
/// Between a panic of an informer itself and its next attempt.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(1);

/// Hands out informers, starts each with its first user and ends it with its last. Clones are for
/// the same user; [`Informers::of_run`] is for another.
#[derive(Clone)]
pub struct Informers {
    shared: Arc<Shared>,
    session: Session,
    /// Lists begun before are too old for this user.
    since: Option<Instant>,
    /// Custom kinds count whoever's label their CRD has.
    any_owner: bool,
}

/// How informers are made.
pub struct InformersOptions {
    /// The process's own API server.
    pub server: Server,
    /// Encoding of kinds with protobuf.
    pub format: Format,
    /// Value of the label `app.kubernetes.io/managed-by` that the CRDs of our kinds have.
    pub product: &'static str,
    /// How often each cache delivers all its objects to its users again; `None` for never.
    pub resync: Option<Duration>,
    /// Ends all informers.
    pub stop: CancellationToken,
}

struct Shared {
    options: InformersOptions,
    metrics: InformerMetrics,
    running: Mutex<HashMap<Key, Weak<Running>>>,
}

/// Informers of equal keys are one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    source: Source,
    object: TypeId,
}

/// An informer that somebody uses; dropped with its last user, it ends.
struct Running {
    informer: Box<dyn Any + Send + Sync>,
    state: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    page_line: Box<dyn Fn() -> String + Send + Sync>,
    _stop: DropGuard,
}

impl Informers {
    /// A set without a running informer.
    pub fn new(options: InformersOptions, metrics: InformerMetrics) -> Self {
        let shared = Arc::new(Shared { options, metrics, running: Mutex::default() });
        Self { shared, session: Session::new(), since: None, any_owner: false }
    }

    /// The informers for a run of a controller: its informers are those of all others, its session is its own.
    #[must_use]
    pub fn of_run(&self) -> Self {
        Self { session: Session::new(), ..self.clone() }
    }

    /// The informers for a run that follows a failed run: its informers are synced when a list has been delivered that
    /// is younger than the last write of the failed run (rule:restarted-run-lists-again).
    #[must_use]
    pub fn of_next_run(&self) -> Self {
        Self { session: Session::new(), since: Some(Instant::now()), ..self.clone() }
    }

    /// Informers for the same user from now on: lists that were begun before are too old for it.
    #[must_use]
    pub fn from_now(&self) -> Self {
        Self { since: Some(Instant::now()), ..self.clone() }
    }

    /// Informers without the condition that the CRD of a custom kind is labelled as ours.
    #[must_use]
    pub fn of_any_owner(&self) -> Self {
        Self { any_owner: true, ..self.clone() }
    }

    /// Informers with the condition that CRDs are labelled as ours, also for a controller that
    /// was asked for by name.
    #[must_use]
    pub fn of_our_crds(&self) -> Self {
        Self { any_owner: false, ..self.clone() }
    }

    /// All objects of a kind on the process's own API server, to be narrowed by the caller.
    pub fn source(&self, kind: Kind) -> Source {
        let custom = !matches!(kind, Kind::BuiltIn(_));
        let mut source = Source::new(self.shared.options.server.clone(), kind);
        source.managed_by = (custom && !self.any_owner).then(|| self.shared.options.product.into());
        source
    }

    /// The informer of all objects of a type, running from now on.
    pub fn get<T: StaticKind>(&self) -> Informer<T> {
        self.get_from(self.source(T::KIND))
    }

    /// The informer of a source whose objects are read as `T`, running from now on until its last
    /// handle and subscription are dropped.
    pub fn get_from<T: Cached>(&self, source: Source) -> Informer<T> {
        let informer = self.shared.informer(source).in_session(self.session.clone());
        match self.since {
            None => informer,
            Some(since) => informer.not_older_than(since),
        }
    }

    /// Waits until a kind is served by the process's own API server, and for this user; lists
    /// nothing but CRDs.
    pub async fn until_served(&self, kind: Kind) {
        let Shared { metrics, options, .. } = &*self.shared;
        let source = self.source(kind);
        let crds = self.shared.informer::<Metadata>(Source::crds(source.server.clone()));
        let sought = Informer::<Metadata>::new(source, metrics, options.format);
        sought.until_served(crds).await;
    }

    /// Whether the schema of a custom kind is ours now: its CRD has our label. It is not where an
    /// aggregated API server serves the kind, where the CRD is somebody else's, or where CRDs may
    /// not be listed: then only fields that upstream has are written, by merge patches.
    pub fn schema_is_ours(&self, kind: &Resource) -> impl Fn() -> bool + Send + Sync + 'static {
        self.crd_has(kind, MANAGED_BY, self.shared.options.product)
    }

    /// Whether the CRD of a custom kind has this label now, as for a field that not every schema of ours
    /// has.
    pub fn crd_has(
        &self,
        kind: &Resource,
        label: &'static str,
        value: &'static str,
    ) -> impl Fn() -> bool + Send + Sync + 'static {
        let Shared { options, .. } = &*self.shared;
        let key = format!("{}.{}", kind.plural, kind.group);
        let crds = self.shared.informer::<Metadata>(Source::crds(options.server.clone()));
        move || {
            let crd = crds.get(&key);
            crd.is_some_and(|crd| crd.labels.get(label).is_some_and(|it| **it == *value))
        }
    }

    /// Waits until the cached state of this user is void; returns the reason.
    pub(crate) async fn void(&self) -> &str {
        self.session.ended().await
    }

    /// True when it is void because of a panic.
    pub(crate) fn have_panicked(&self) -> bool {
        self.session.has_panicked()
    }

    /// The check `informer-sync`: every cache in use is filled and alive, or dormant; the error
    /// names the first that is not. Keeps no informer alive.
    pub(crate) fn check(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.in_use().iter().try_for_each(|running| (running.state)())
    }

    /// A line for each cache in use, by whichever controller. Keeps no informer alive.
    pub(crate) fn page_lines(&self) -> impl Fn() -> Vec<String> + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            let mut lines: Vec<_> = shared.in_use().iter().map(|it| (it.page_line)()).collect();
            lines.sort_unstable();
            lines
        }
    }
}

impl Shared {
    fn in_use(&self) -> Vec<Arc<Running>> {
        self.running.lock().values().filter_map(Weak::upgrade).collect()
    }

    fn informer<T: Cached>(self: &Arc<Self>, source: Source) -> Informer<T> {
        let key = Key { source, object: TypeId::of::<T>() };
        let known = self.running.lock().get(&key).and_then(Weak::upgrade);
        if let Some(informer) = known.and_then(handle) {
            return informer;
        }
        let crds = (!matches!(key.source.kind, Kind::BuiltIn(_)))
            .then(|| self.informer::<Metadata>(Source::crds(key.source.server.clone())));
        let mut running = self.running.lock();
        // Somebody else may have been quicker.
        if let Some(informer) = running.get(&key).and_then(Weak::upgrade).and_then(handle) {
            return informer;
        }
        running.retain(|_, running| running.strong_count() > 0);
        let (informer, started) = self.start::<T>(key.source.clone(), crds);
        running.insert(key, Arc::downgrade(&started));
        informer.keeping(started)
    }

    fn start<T: Cached>(
        &self,
        source: Source,
        crds: Option<Informer<Metadata>>,
    ) -> (Informer<T>, Arc<Running>) {
        let are_crds = source == Source::crds(source.server.clone());
        let informer = Informer::<T>::new(source, &self.metrics, self.options.format);
        let stop = self.options.stop.child_token();
        // Who looks at CRDs asks the server what it serves with each word of them.
        let resync = self.options.resync.filter(|_| !are_crds);
        tokio::spawn(task(run(informer.clone(), crds, resync, stop.clone())));
        let (watched, asked) = (informer.clone(), informer.clone());
        let running = Running {
            informer: Box::new(informer.clone()),
            state: Box::new(move || match watched.denied() {
                // Who needs them says so (rule:absent-kinds-are-dormant).
                Some(_) if are_crds => Ok(()),
                _ => state(&watched),
            }),
            page_line: Box::new(move || page_line_of(&asked)),
            _stop: stop.drop_guard(),
        };
        (informer, Arc::new(running))
    }
}

/// A handle that keeps its informer running.
fn handle<T: Cached>(running: Arc<Running>) -> Option<Informer<T>> {
    let informer = running.informer.downcast_ref::<Informer<T>>()?.clone();
    Some(informer.keeping(running))
}

/// Runs an informer until `stop`. After a panic the informer and all its users start again: the panic
/// may have cut a delivery short, and nothing tells what was missed.
async fn run<T: Cached>(
    informer: Informer<T>,
    crds: Option<Informer<Metadata>>,
    resync: Option<Duration>,
    stop: CancellationToken,
) {
    let resource = informer.name();
    while !stop.is_cancelled() {
        let run = async {
            let running = async {
                match crds.clone() {
                    None => informer.run(stop.clone()).await,
                    Some(crds) => informer.run_while_served(crds, stop.clone()).await,
                }
            };
            tokio::select! {
                biased;
                () = running => {}
                never = redeliver(&informer, resync) => match never {},
            }
        };
        if let Err(panic) = contain(run).await {
            error!(logger = "informer", resource, %panic, "The informer panicked and is restarted");
            informer.panicked(&format!("the informer of {resource} panicked"));
            sleep(PAUSE_AFTER_PANIC).await;
        }
    }
}

async fn redeliver<T: Cached>(informer: &Informer<T>, every: Option<Duration>) -> Infallible {
    let Some(period) = every else { return pending().await };
    loop {
        sleep(period).await;
        informer.redeliver();
    }
}

fn page_line_of<T: Cached>(informer: &Informer<T>) -> String {
    let (resource, objects) = (informer.name(), informer.len());
    let state = match state(informer) {
        _ if informer.is_dormant() => "dormant".to_owned(),
        Ok(()) => format!("last event {} s ago", informer.silent_for().as_secs()),
        Err(why) => why,
    };
    format!("cache {resource}: {objects} objects, {state}")
}

fn state<T: Cached>(informer: &Informer<T>) -> Result<(), String> {
    let resource = informer.name();
    if informer.is_dormant() {
        return Ok(());
    }
    if let Some(blocked) = informer.blocked() {
        return Err(format!("{resource}: {blocked}"));
    }
    if let Some(denied) = informer.denied() {
        return Err(format!("{resource}: {denied}"));
    }
    if !informer.is_synced() {
        return Err(format!("the first list of {resource} is not complete"));
    }
    let silent = informer.silent_for();
    if silent > SILENCE {
        return Err(format!("no event of {resource} for {} s", silent.as_secs()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
