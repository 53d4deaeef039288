//! [`watch_clusters`]: watches the objects of a flavour with their credentials and Secrets, and runs the
//! [`Pipeline`]: each change brings the clusters concerned into its queue. [`report`] logs which
//! rights are missing while caches cannot be filled, [`Reading`] ends a handler at a stop.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use client::PluginError;
use events::EventType;
use futures::future::BoxFuture;
use informer::{Delta, Informer, Source, Subscription};
use kube_api::{Cached, Kind, Metadata, Resource};
use manager::{Context, Failure, feed};
use objects::Object;
use tokio::time::sleep;
use tokio::try_join;
use tokio_util::sync::CancellationToken;
use tracing::error;
use workqueue::{Backoff, Jitter, Next, Reconcile, Retry, WorkQueue};

use super::connections::SecretCache;
use super::flavour::MemberId;
use super::flavour_registry::FlavourRegistry;
use super::object_cache::{KEEPS_AVAILABILITY, is_annotated_otherwise};
use super::pipeline::{CredentialReader, Credentials, FirstList, Pipeline, Work};
use super::probes::{Rereads, client_prober};
use super::resolve::{ObjectModel, Resolve, identity};
use crate::secret_data::SECRETS;

const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(30), Jitter::Above(0.5));
/// The objects that a flavour watches, and its names in metrics.
pub(crate) struct Watched<R: Resolve> {
    /// The only namespace of its objects, if there is one.
    pub(crate) namespace: Option<String>,
    /// Where its Secrets are.
    pub(crate) secrets: SecretScope,
    /// The credential objects of the flavour, if it has such a kind.
    pub(crate) credentials: Option<CredentialKind<R>>,
    /// Grants what is read of its kinds.
    pub(crate) manifest: &'static str,
    /// Grants what is read of its Secrets.
    pub(crate) secrets_manifest: &'static str,
    /// The name of the queue in metrics.
    pub(crate) queue: &'static str,
    /// Clusters that are looked at at the same time.
    pub(crate) workers: usize,
    /// The purpose of the client that reads credentials, in metrics.
    pub(crate) purpose: &'static str,
}

/// The namespaces whose Secrets are watched.
pub(crate) enum SecretScope {
    /// One namespace, or all.
    Namespace(Option<String>),
    /// Those that have a Secret in use, each by a watch of its own.
    InUse,
}

/// A kind of credential objects.
pub(crate) struct CredentialKind<R: Resolve> {
    pub(crate) kind: Resource,
    pub(crate) reader: fn(kube::Client) -> CredentialReader<R>,
}

/// The work of a flavour in addition to its pipeline.
pub(crate) struct Companions {
    /// The first cluster is looked at after this.
    pub(crate) ready: BoxFuture<'static, ()>,
    /// Runs until the stop.
    pub(crate) run: BoxFuture<'static, Result<(), Failure>>,
}

/// The objects of a flavour, once they are listed, and the queue of its clusters.
pub(crate) struct Followed<'a, R: Resolve> {
    pub(crate) context: &'a Context,
    pub(crate) registry: &'a FlavourRegistry,
    pub(crate) objects: &'a Informer<Object<R::Schema>>,
    pub(crate) queue: &'a WorkQueue<Work>,
}

/// Runs until the stop. Nothing but the objects is watched while their kind is not served.
/// `companions` is called once it is.
pub(crate) async fn watch_clusters<R: Resolve>(
    flavour: Arc<R>,
    context: Context,
    registry: FlavourRegistry,
    watched: Watched<R>,
    companions: impl FnOnce(&Followed<'_, R>) -> Companions + Send,
) -> Result<(), Failure> {
    let kind = flavour.resource();
    let source = in_namespace(&context, Kind::Custom(kind.clone()), watched.namespace.as_ref());
    let objects: Informer<Object<R::Schema>> = context.informers.get_from(source);
    let schema_is_ours = Arc::new(context.informers.schema_is_ours(kind));
    flavour.members().objects.set(&objects, schema_is_ours);
    let keeps_records = context.informers.crd_has(kind, KEEPS_AVAILABILITY, "true");
    flavour.members().objects.keep_records_where(Arc::new(keeps_records));
    report(&context, &objects, watched.manifest);
    let listed = async {
        objects.synced_or_dormant().await;
        if !objects.is_synced() {
            registry.filled();
        }
        objects.synced().await;
    };
    if context.stop.run_until_cancelled(listed).await.is_none() {
        return Ok(());
    }
    let queue = context.queue::<Work>(watched.queue, BACKOFF);
    let again = queue.clone();
    registry.look_again_by(move |key| again.add(Work::Cluster(Arc::clone(key))));
    let followed =
        Followed { context: &context, registry: &registry, objects: &objects, queue: &queue };
    let Companions { ready, run } = companions(&followed);
    let client = context.clients.for_purpose(watched.purpose, (-1.0, 1))?;
    let secrets =
        secret_cache(&context, &flavour, &queue, watched.secrets, watched.secrets_manifest);
    let credentials = watched.credentials.map(|CredentialKind { kind, reader }| {
        let cache =
            context.informers.get_from::<Metadata>(context.informers.source(Kind::Custom(kind)));
        report(&context, &cache, watched.manifest);
        Credentials { cache, reader: reader(client.clone()) }
    });
    // The metadata that has to be listed before clusters are looked at; with credential objects not
    // every cluster needs a Secret.
    let metadata = credentials.as_ref().map(|it| it.cache.clone());
    let metadata = metadata.or_else(|| secrets.whole());
    let add = queue.clone();
    let _of_objects = subscribe(&objects, &registry, &flavour, move |key| {
        add.add(Work::Cluster(Arc::clone(key)));
    });
    let _of_credentials = credentials.as_ref().map(|Credentials { cache, .. }| {
        // The credentials of the first list are looked up with their clusters.
        let known = cache.clone();
        feed(cache, &queue, move |credential: &Metadata| {
            known.is_synced().then(|| Work::Credential(Arc::clone(&credential.key)))
        })
    });
    let known = registry.clone();
    let filled = async move {
        // rule:a-missing-right-is-no-failure
        if let Some(metadata) = metadata {
            metadata.synced_or_denied().await;
        }
        known.serves();
        known.filled();
    };
    let plugins = run_plugins(&flavour, &context, &queue);
    let pipeline = Pipeline {
        flavour,
        registry,
        objects: objects.clone(),
        queue: queue.clone(),
        secrets,
        credentials,
        client,
        recorder: context.recorder.clone(),
        probers: client_prober,
        of_first_list: FirstList::default(),
        rereads: Rereads::default(),
    };
    pipeline.note_first_list();
    let work = context
        .run(&queue, Arc::new(Reading::new(pipeline, &context.stop)))
        .workers(watched.workers)
        .start_filled(&objects)
        .start_after(ready)
        .start_after(filled)
        .until_stopped();
    try_join!(work, run, plugins)?;
    Ok(())
}

/// Runs the exec plugins of a flavour that has some, and has the clusters looked at whose credentials may be other ones.
fn run_plugins<R: Resolve>(
    flavour: &Arc<R>,
    context: &Context,
    queue: &WorkQueue<Work>,
) -> impl Future<Output = Result<(), Failure>> + Send + use<R> {
    let (of_users, flavour, queue) = (Arc::clone(flavour), Arc::clone(flavour), queue.clone());
    let (recorder, stop) = (context.recorder.clone(), context.stop.clone());
    async move {
        let Some(plugins) = flavour.members().plugins.cloned() else { return Ok(()) };
        let is_used = move |cluster: &MemberId| of_users.members().connections.knows(cluster);
        let changed = move |cluster: &MemberId, failure: Option<PluginError>| {
            if let Some(error) = failure {
                let object = cluster.object_ref(flavour.resource());
                let text = format!("cannot get a credential of the cluster: {error}");
                recorder.event(object, EventType::Warning, "AccessPluginFailed", text);
            }
            flavour.members().connections.invalidate(&cluster.key);
            queue.add(Work::Cluster(Arc::clone(&cluster.key)));
        };
        plugins.run(is_used, changed, stop).await;
        Ok(())
    }
}

/// The source of a kind in one namespace, or in all.
pub(crate) fn in_namespace(context: &Context, kind: Kind, namespace: Option<&String>) -> Source {
    let mut source = context.informers.source(kind);
    source.namespace = namespace.map(|namespace| namespace.as_str().into());
    source
}

fn secret_cache<R: Resolve>(
    context: &Context,
    flavour: &Arc<R>,
    queue: &WorkQueue<Work>,
    scope: SecretScope,
    manifest: &'static str,
) -> SecretCache {
    let context = context.clone();
    let begin = move |namespace: Option<&String>, end: CancellationToken| {
        let source = in_namespace(&context, Kind::BuiltIn(SECRETS), namespace);
        let cache = context.informers.get_from::<Metadata>(source);
        report_until(end, &context, &cache, manifest);
        cache
    };
    let (flavour, queue) = (Arc::clone(flavour), queue.clone());
    let changed = move |secret: &str| {
        for cluster in flavour.members().connections.users_of_secret(secret) {
            queue.add(Work::Cluster(cluster));
        }
    };
    match scope {
        SecretScope::Namespace(namespace) => {
            let until = CancellationToken::new();
            SecretCache::new(move || begin(namespace.as_ref(), until.clone()), changed)
        }
        SecretScope::InUse => {
            let begin =
                move |namespace: &str, end: CancellationToken| begin(Some(&namespace.into()), end);
            SecretCache::by_namespace(begin, changed)
        }
    }
}

/// Between lines.
const EVERY: Duration = Duration::from_secs(60);
/// From the start to the first line.
const LOOK: Duration = Duration::from_secs(1);

/// Logs until the run stops what the server says while it refuses to list this cache. `manifest`
/// grants what the cache needs.
pub(crate) fn report<T: Cached>(context: &Context, cache: &Informer<T>, manifest: &'static str) {
    report_until(CancellationToken::new(), context, cache, manifest);
}

/// Like [`report`], until `end` as well.
fn report_until<T: Cached>(
    end: CancellationToken,
    context: &Context,
    cache: &Informer<T>,
    manifest: &'static str,
) {
    let (stop, cache) = (context.stop.clone(), cache.clone());
    context.spawn(async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = end.cancelled() => {}
            _ = look(|| cache.denied(), manifest) => {}
        }
    });
}

async fn look(denied: impl Fn() -> Option<String>, manifest: &str) -> Infallible {
    loop {
        sleep(LOOK).await;
        if let Some(missing) = denied() {
            let missing = missing.replace(['\n', '\r'], " ");
            error!(missing, "Missing permission: cannot list these objects; apply {manifest}");
            sleep(EVERY.saturating_sub(LOOK)).await;
        }
    }
}

/// Cuts its handler off at a stop.
pub(crate) struct Reading<R> {
    handler: R,
    stop: CancellationToken,
}

impl<R> Reading<R> {
    pub(crate) fn new(handler: R, stop: &CancellationToken) -> Self {
        Self { handler, stop: stop.clone() }
    }
}

impl<R: Reconcile> Reconcile for Reading<R> {
    type Key = R::Key;

    async fn reconcile(&self, key: &Self::Key) -> Result<Next, Retry> {
        let handled = self.stop.run_until_cancelled(self.handler.reconcile(key)).await;
        handled.unwrap_or(Ok(Next::Done))
    }
}

/// Subscribes to the objects of a flavour. Deletions and foreign statuses are passed on at once
/// (`rule:nothing-outlives-its-object`), everything else by
/// `add` through the queue.
pub(crate) fn subscribe<M: ObjectModel>(
    objects: &Informer<Object<M::Schema>>,
    registry: &FlavourRegistry,
    flavour: &Arc<M>,
    add: impl Fn(&Arc<str>) + Send + Sync + 'static,
) -> Subscription<Object<M::Schema>> {
    let (registry, flavour) = (registry.clone(), Arc::clone(flavour));
    objects.subscribe(move |delta| match delta {
        Delta::Added(object) => add(&object.metadata.key),
        Delta::Updated { old, new } => {
            // Our own writes come back too, and are what was written last.
            if old.status != new.status {
                registry.shows(&identity(new), flavour.shown(new));
            }
            let other_labels = old.metadata.labels != new.metadata.labels;
            if flavour.is_work(old, new) || is_annotated_otherwise(old, new) || other_labels {
                add(&new.metadata.key);
            }
        }
        Delta::Deleted(object) => {
            registry.remove(&identity(object));
            // What only it used ends.
            add(&object.metadata.key);
        }
        Delta::ListStarts | Delta::ListEnds => {}
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use log_capture::Capture;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_told_on_one_line_a_minute_until_it_is_granted() {
        let refused = AtomicBool::new(true);
        let denied = || refused.load(Ordering::Relaxed).then(|| "no\nclusters".to_owned());
        let captured = Capture::begin();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        drop(timeout(minutes(3), look(denied, "config/rbac/x.yaml")).await);
        let lines = captured.with("Missing permission");
        assert_eq!(lines.len(), 3, "{lines:#?}");
        for part in ["no clusters", "apply config/rbac/x.yaml"] {
            assert!(lines[0].contains(part), "{}", lines[0]);
        }
        refused.store(false, Ordering::Relaxed);
        drop(timeout(minutes(3), look(denied, "config/rbac/x.yaml")).await);
        assert_eq!(captured.with("Missing permission").len(), 3);
    }
}

#[cfg(test)]
mod reading_tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Waits for an answer that does not come.
    struct Waiting;

    impl Reconcile for Waiting {
        type Key = String;

        async fn reconcile(&self, _: &String) -> Result<Next, Retry> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_not_answered_ends_with_the_run() {
        let stop = CancellationToken::new();
        let reading = Reading::new(Waiting, &stop);
        let (key, minute) = ("key".to_owned(), Duration::from_secs(60));
        assert!(timeout(minute, reading.reconcile(&key)).await.is_err());
        stop.cancel();
        assert!(matches!(timeout(minute, reading.reconcile(&key)).await, Ok(Ok(Next::Done))));
    }
}
