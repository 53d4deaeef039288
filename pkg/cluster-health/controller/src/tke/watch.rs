//! Watches Clusters, their ClusterCredentials and their Secrets: each change brings the Clusters
//! concerned into the queue.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use informer::{Delta, Informer, Subscription};
use kube_api::{Kind, Metadata};
use manager::{Context, Failure, feed};
use objects::Object;
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio::try_join;
use workqueue::{Backoff, Jitter, Next, Reconcile, Retry, WorkQueue};

use super::detail_workers::DetailWorkers;
use super::details::DetailTask;
use super::fetch::{Fetch, FetchError};
use super::flavour::Tke;
use super::resolve::TkeResolver;
use crate::api::tke::{CLUSTER_CREDENTIALS, CLUSTERS, Cluster};
use crate::engine::{Pipeline, Registry, Source, subscribe};
use crate::missing_rights::Reading;
use crate::missing_rights::{denied, report};
use crate::secret_data::SECRETS;

/// Grants what is read of TKEStack's kinds, and of Secrets.
const MANIFEST: &str = "config/rbac/cluster-health-tke.yaml";
const MANIFEST_OF_SECRETS: &str = "config/rbac/cluster-health.yaml";
/// Clusters that are looked at at once.
const WORKERS: usize = 16;
/// What a worker waits for the first list of Secrets.
const LISTED_WITHIN: Duration = Duration::from_secs(2);
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(30), Jitter::Around(0.5));

/// Something to look at again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    Cluster(Arc<str>),
    Credential(Arc<str>),
    Secret(Arc<str>),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(key) | Self::Credential(key) | Self::Secret(key) => f.write_str(key),
        }
    }
}

impl Source for Tke {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: Registry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        Box::pin(run(self, context, registry))
    }
}

/// Until the run stops.
async fn run(flavour: Arc<Tke>, context: Context, registry: Registry) -> Result<(), Failure> {
    let informers = &context.informers;
    let clusters = informers.get_from::<Object<Cluster>>(informers.source(Kind::Custom(CLUSTERS)));
    let source = informers.source(Kind::Custom(CLUSTER_CREDENTIALS));
    let credentials = informers.get_from::<Metadata>(source);
    let queue = context.queue::<Work>("cluster_health_tke", BACKOFF);
    let tasks = context.queue::<DetailTask>("cluster_health_tke_facts", BACKOFF);
    let machines = context.queue::<Arc<str>>("cluster_health_tke_machines", BACKOFF);
    flavour.objects.set(&clusters, Arc::new(informers.schema_is_ours(&CLUSTERS)));
    flavour.follow(registry.clone(), tasks.clone(), machines.clone());
    let again = queue.clone();
    registry.look_again_by(move |key| again.add(Work::Cluster(Arc::clone(key))));
    let workers = DetailWorkers::new(&context, &flavour, &registry, &clusters);
    let refused = [denied(&clusters), denied(&credentials)].into_iter().chain(workers.denied());
    report(&context, refused.collect(), MANIFEST);
    let add = queue.clone();
    let _of_clusters = subscribe(&clusters, &registry, &flavour, move |key| {
        add.add(Work::Cluster(Arc::clone(key)));
    });
    let (all, told) = ((clusters.clone(), credentials.clone()), registry.clone());
    let filled = async move {
        all.0.synced_or_dormant().await;
        // rule:a-missing-right-is-no-failure
        all.1.synced_or_denied().await;
        if all.0.is_synced() {
            told.serves();
        }
        told.filled();
    };
    let (awaited, told, stop) = (clusters.clone(), registry.clone(), context.stop.clone());
    context.spawn(async move {
        if stop.run_until_cancelled(awaited.synced()).await.is_some() {
            told.serves();
        }
    });
    let resolver = TkeResolver {
        fetch: Fetch::new(context.clients.for_purpose("cluster-health-credentials", (-1.0, 1))?),
        secrets: Secrets::new(&context, &flavour, &queue),
        recorder: context.recorder.clone(),
        credentials: credentials.clone(),
        queue: queue.clone(),
        registry: registry.clone(),
        flavour: Arc::clone(&flavour),
    };
    let pipeline = Pipeline::new(flavour, resolver, registry, clusters.clone());
    let watch = Arc::new(Reading::new(Watch { pipeline }, &context.stop));
    // Those of the first list are looked up with their clusters.
    let known = credentials.clone();
    let _of_credentials = feed(&credentials, &queue, move |credential: &Metadata| {
        known.is_synced().then(|| Work::Credential(Arc::clone(&credential.key)))
    });
    let work = context
        .run(&queue, watch)
        .workers(WORKERS)
        .start_filled(&clusters)
        .start_after(filled)
        .until_stopped();
    try_join!(work, workers.run(&context, &tasks, &machines, &clusters))?;
    Ok(())
}

/// Handles one key of the queue at a time.
pub(super) struct Watch {
    pub(super) pipeline: Pipeline<TkeResolver>,
}

impl Reconcile for Watch {
    type Key = Work;

    async fn reconcile(&self, work: &Work) -> Result<Next, Retry> {
        match work {
            Work::Cluster(name) => self.pipeline.reconcile(name).await,
            Work::Credential(name) => self.credential(name).await,
            Work::Secret(key) => {
                self.look_at(self.pipeline.flavour.states.users_of_secret(key));
                Ok(Next::Done)
            }
        }
    }
}

impl Watch {
    /// Queues the Clusters that use a ClusterCredential, and the one that it is for: that may have
    /// none yet, or an older one.
    async fn credential(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let Pipeline { flavour, resolver, .. } = &self.pipeline;
        let users = flavour.states.users_of_credential(name);
        self.look_at(users.clone());
        if let Some(credential) = resolver.fetch.credential(name).await?
            && users.iter().all(|user| **user != *credential.cluster_name)
        {
            let cluster: Arc<str> = Arc::from(&*credential.cluster_name);
            flavour.states.invalidate_connection(&cluster);
            resolver.queue.add(Work::Cluster(cluster));
        }
        Ok(Next::Done)
    }

    fn look_at(&self, clusters: Vec<Arc<str>>) {
        for cluster in clusters {
            self.pipeline.resolver.queue.add(Work::Cluster(cluster));
        }
    }
}

/// The cache of the Secrets' metadata, which begins when the first of them is needed.
pub(super) struct Secrets {
    begin: Box<dyn Fn() -> Informer<Metadata> + Send + Sync>,
    queue: WorkQueue<Work>,
    /// `None`: all namespaces.
    pub(super) namespace: Option<String>,
    cache: Mutex<Option<(Informer<Metadata>, Subscription<Metadata>)>>,
}

impl Secrets {
    fn new(context: &Context, flavour: &Tke, queue: &WorkQueue<Work>) -> Self {
        let namespace = flavour.options.secret_namespace.clone();
        let (context, of) = (context.clone(), namespace.clone());
        let begin = move || {
            let mut source = context.informers.source(Kind::BuiltIn(SECRETS));
            source.namespace = of.as_deref().map(Into::into);
            let informer = context.informers.get_from::<Metadata>(source);
            report(&context, vec![denied(&informer)], MANIFEST_OF_SECRETS);
            informer
        };
        Self::by(begin, namespace, queue)
    }

    /// `begin` begins the cache.
    pub(super) fn by(
        begin: impl Fn() -> Informer<Metadata> + Send + Sync + 'static,
        namespace: Option<String>,
        queue: &WorkQueue<Work>,
    ) -> Self {
        Self { begin: Box::new(begin), queue: queue.clone(), namespace, cache: Mutex::default() }
    }

    /// The version of a Secret. Waits a moment for the first list and not for ever: whoever needs
    /// no Secret must not wait for those that cannot be listed.
    pub(super) async fn version(&self, key: &str) -> Result<Option<u64>, FetchError> {
        let cache = self.cache();
        timeout(LISTED_WITHIN, cache.synced()).await.map_err(|_| {
            let denied = cache.denied();
            FetchError::Unlisted(denied.unwrap_or_else(|| "they are not listed yet".to_owned()))
        })?;
        Ok(cache.get(key).map(|secret| secret.resource_version))
    }

    fn cache(&self) -> Informer<Metadata> {
        let mut cache = self.cache.lock();
        let (informer, _) = cache.get_or_insert_with(|| {
            let informer = (self.begin)();
            let queue = self.queue.clone();
            let told = informer.subscribe(move |delta| match delta {
                Delta::Added(secret)
                | Delta::Deleted(secret)
                | Delta::Updated { new: secret, .. } => {
                    queue.add(Work::Secret(Arc::clone(&secret.key)));
                }
                Delta::ListStarts | Delta::ListEnds => {}
            });
            (informer, told)
        });
        informer.clone()
    }
}
