//! [`follow`]: watches the objects of a flavour with their credentials and Secrets, and runs the
//! [`Pipeline`]: each change brings the clusters concerned into its queue.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use informer::{Informer, Source};
use kube_api::{Kind, Metadata, Resource};
use manager::{Context, Failure, feed};
use objects::Object;
use tokio::try_join;
use workqueue::{Backoff, Jitter, WorkQueue};

use super::pipeline::{
    CredentialReader, Credentials, FirstList, Pipeline, Rereads, Work, client_prober, subscribe,
};
use super::registry::Registry;
use super::resolve::Resolve;
use super::secret_cache::SecretCache;
use crate::missing_rights::{Reading, denied, report};
use crate::secret_data::SECRETS;

const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(30), Jitter::Above(0.5));
/// Grants what is read of Secrets.
const MANIFEST_OF_SECRETS: &str = "config/rbac/cluster-health.yaml";

/// What a flavour watches, and by which names.
pub(crate) struct Watched<R: Resolve> {
    /// The only namespace of its objects, if there is one.
    pub(crate) namespace: Option<String>,
    /// The only namespace of the Secrets, if there is one.
    pub(crate) secrets_namespace: Option<String>,
    /// Its credential objects, if it has such a kind.
    pub(crate) credentials: Option<CredentialKind<R>>,
    /// Grants what is read of its kinds.
    pub(crate) manifest: &'static str,
    /// The name of the queue in metrics.
    pub(crate) queue: &'static str,
    /// Clusters that are looked at at the same time.
    pub(crate) workers: usize,
    /// The purpose of the client that reads credentials, in metrics.
    pub(crate) purpose: &'static str,
}

/// A kind of credential objects.
pub(crate) struct CredentialKind<R: Resolve> {
    pub(crate) kind: Resource,
    pub(crate) reader: fn(kube::Client) -> CredentialReader<R>,
}

/// What a flavour does beside its pipeline.
pub(crate) struct Companions {
    /// The first cluster is looked at after this.
    pub(crate) ready: BoxFuture<'static, ()>,
    /// Runs until the stop.
    pub(crate) run: BoxFuture<'static, Result<(), Failure>>,
}

/// The objects of a flavour, once they are listed, and the queue of its clusters.
pub(crate) struct Followed<'a, R: Resolve> {
    pub(crate) context: &'a Context,
    pub(crate) registry: &'a Registry,
    pub(crate) objects: &'a Informer<Object<R::Schema>>,
    pub(crate) queue: &'a WorkQueue<Work>,
}

/// Runs until the stop. Nothing but the objects is watched while their kind is not served.
/// `companions` is called once it is.
pub(crate) async fn follow<R: Resolve>(
    flavour: Arc<R>,
    context: Context,
    registry: Registry,
    watched: Watched<R>,
    companions: impl FnOnce(&Followed<'_, R>) -> Result<Companions, Failure> + Send,
) -> Result<(), Failure> {
    let kind = flavour.resource();
    let source = in_namespace(&context, Kind::Custom(kind.clone()), watched.namespace.as_ref());
    let objects: Informer<Object<R::Schema>> = context.informers.get_from(source);
    let schema_is_ours = Arc::new(context.informers.schema_is_ours(kind));
    flavour.members().objects.set(&objects, schema_is_ours);
    report(&context, vec![denied(&objects)], watched.manifest);
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
    let Companions { ready, run } = companions(&followed)?;
    let client = context.clients.for_purpose(watched.purpose, (-1.0, 1))?;
    let secrets = secret_cache(&context, &flavour, &queue, watched.secrets_namespace);
    let credentials = watched.credentials.map(|CredentialKind { kind, reader }| {
        let cache =
            context.informers.get_from::<Metadata>(context.informers.source(Kind::Custom(kind)));
        report(&context, vec![denied(&cache)], watched.manifest);
        Credentials { cache, reader: reader(client.clone()) }
    });
    // The metadata that has to be listed before clusters are looked at; with credential objects not
    // every cluster needs a Secret.
    let metadata = credentials.as_ref().map(|it| it.cache.clone());
    let metadata = metadata.unwrap_or_else(|| secrets.cache());
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
        metadata.synced_or_denied().await;
        known.serves();
        known.filled();
    };
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
    let work = context
        .run(&queue, Arc::new(Reading::new(pipeline, &context.stop)))
        .workers(watched.workers)
        .start_filled(&objects)
        .start_after(ready)
        .start_after(filled)
        .until_stopped();
    try_join!(work, run)?;
    Ok(())
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
    namespace: Option<String>,
) -> SecretCache {
    let context = context.clone();
    let begin = move || {
        let source = in_namespace(&context, Kind::BuiltIn(SECRETS), namespace.as_ref());
        let cache = context.informers.get_from::<Metadata>(source);
        report(&context, vec![denied(&cache)], MANIFEST_OF_SECRETS);
        cache
    };
    let (flavour, queue) = (Arc::clone(flavour), queue.clone());
    SecretCache::new(begin, move |secret| {
        for cluster in flavour.members().connections.users_of_secret(secret) {
            queue.add(Work::Cluster(cluster));
        }
    })
}
