//! Follows the objects of this flavour, their Secrets and the KubeFedConfig: whatever changes brings
//! the members concerned into the queue.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use informer::{Delta, Informer, Subscription};
use jiff::Timestamp;
use manager::{Context, Failure};
use model::{Kind, Metadata};
use objects::Object;
use tracing::warn;
use workqueue::{Backoff, Jitter, WorkQueue};

use super::flavour::KubeFed;
use super::reconcile::{Caches, Reconciler};
use super::references::References;
use super::{settings, status, survey};
use crate::api::kubefed::{KUBEFED_CLUSTERS, KUBEFED_CONFIGS, KubeFedCluster, KubeFedConfig};
use crate::engine::{Cluster, Registry, Source};
use crate::missing_rights::{denied, tell};
use crate::reading::Reading;
use crate::secret_data::SECRETS;

const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(30), Jitter::Above(0.5));
/// Grants what is read here.
const MANIFEST: &str = "config/rbac/cluster-health.yaml";
/// Secrets that are read at the same time: of 10,000 members in 15 s when each read takes 100 ms.
const WORKERS: usize = 64;

type Clusters = Informer<Object<KubeFedCluster>>;

impl Source for KubeFed {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: Registry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        Box::pin(follow(self, context, registry))
    }
}

/// While the kind is not served there is nothing to do, and no Secret is looked at.
async fn follow(
    flavour: Arc<KubeFed>,
    context: Context,
    registry: Registry,
) -> Result<(), Failure> {
    let source = in_namespace(&context, Kind::Custom(KUBEFED_CLUSTERS), &flavour);
    let clusters: Clusters = context.informers.get_from(source);
    flavour.follow(&clusters);
    if let Some(metrics) = &flavour.upstream_metrics {
        metrics.show(&registry);
    }
    tell(&context, vec![denied(&clusters)], MANIFEST);
    let listed = async {
        clusters.synced_or_dormant().await;
        if !clusters.is_synced() {
            registry.filled();
        }
        clusters.synced().await;
    };
    if context.stop.run_until_cancelled(listed).await.is_none() {
        return Ok(());
    }
    let queue: WorkQueue<Arc<str>> = context.queue("kubefedclusters", BACKOFF);
    let again = queue.clone();
    registry.look_again_by(move |key| again.add(Arc::clone(key)));
    let references = Arc::new(References::default());
    let secrets: Informer<Metadata> =
        context.informers.get_from(in_namespace(&context, Kind::BuiltIn(SECRETS), &flavour));
    let config = config_of(&flavour, &context);
    let _of_clusters = on_clusters(&clusters, &queue, &references, &registry);
    let _of_secrets = on_secrets(&secrets, &queue, &references);
    let _of_config = config.as_ref().map(|config| on_config(config, &queue, &clusters, &flavour));
    let client = context.clients.for_purpose("cluster-health-secrets", (-1.0, 1))?;
    let first: HashSet<_> =
        clusters.frozen(|all| all.values().map(|it| Arc::clone(&it.metadata.uid)).collect());
    if flavour.options.zones {
        let (flavour, registry) = (Arc::clone(&flavour), registry.clone());
        let (recorder, stop) = (context.recorder.clone(), context.stop.clone());
        context.spawn(survey::run(flavour, registry, recorder, stop));
    }
    let (known, told) = (secrets.clone(), registry.clone());
    let filled = async move {
        known.synced_or_dormant().await;
        told.serves();
        told.filled();
    };
    let refused = config.iter().map(denied).chain([denied(&secrets)]).collect();
    tell(&context, refused, MANIFEST);
    let caches = Caches { clusters: clusters.clone(), secrets: secrets.clone(), first };
    let reconciler = Reconciler { flavour, caches, references, registry, client };
    let reconciler = Arc::new(Reading::new(reconciler, &context.stop));
    let mut run = context.run(&queue, reconciler).workers(WORKERS);
    if let Some(config) = &config {
        run = run.start_filled(config);
    }
    run.start_filled(&clusters).start_filled(&secrets).start_after(filled).until_stopped().await?;
    Ok(())
}

fn in_namespace(context: &Context, kind: Kind, flavour: &KubeFed) -> informer::Source {
    let mut source = context.informers.source(kind);
    source.namespace = flavour.options.namespace.as_deref().map(Into::into);
    source
}

fn config_of(flavour: &KubeFed, context: &Context) -> Option<Informer<Object<KubeFedConfig>>> {
    let name = flavour.options.config.as_deref()?;
    let mut source = in_namespace(context, Kind::Custom(KUBEFED_CONFIGS), flavour);
    source.fields = Some(format!("metadata.name={name}").into());
    Some(context.informers.get_from(source))
}

/// A cluster whose object is gone is told of here and not from the queue
/// (`rule:nothing-outlives-its-object`).
fn on_clusters(
    clusters: &Clusters,
    queue: &WorkQueue<Arc<str>>,
    references: &Arc<References>,
    registry: &Registry,
) -> Subscription<Object<KubeFedCluster>> {
    let (queue, registry, references) = (queue.clone(), registry.clone(), Arc::clone(references));
    clusters.subscribe(move |delta| match delta {
        Delta::Added(object) => queue.add(Arc::clone(&object.metadata.key)),
        Delta::Updated { old, new } => {
            // Our own status writes come back as well, and are what was written last.
            if old.status != new.status {
                let (uid, key) = (Arc::clone(&new.metadata.uid), Arc::clone(&new.metadata.key));
                let shown = status::shown(&new.status, Timestamp::now());
                registry.shows(&Cluster { uid, key }, shown);
            }
            if old.body.spec != new.body.spec || old.metadata.deleting() != new.metadata.deleting()
            {
                queue.add(Arc::clone(&new.metadata.key));
            }
        }
        Delta::Deleted(object) => {
            let (uid, key) = (Arc::clone(&object.metadata.uid), Arc::clone(&object.metadata.key));
            references.set(&key, None);
            registry.remove(&Cluster { uid, key });
        }
        Delta::ListStarts | Delta::ListEnds => {}
    })
}

fn on_secrets(
    secrets: &Informer<Metadata>,
    queue: &WorkQueue<Arc<str>>,
    references: &Arc<References>,
) -> Subscription<Metadata> {
    let references = Arc::clone(references);
    manager::feed(secrets, queue, move |secret: &Metadata| references.of(&secret.key))
}

/// `rule:kubefed-config-wins`
fn on_config(
    config: &Informer<Object<KubeFedConfig>>,
    queue: &WorkQueue<Arc<str>>,
    clusters: &Clusters,
    flavour: &Arc<KubeFed>,
) -> Subscription<Object<KubeFedConfig>> {
    let (clusters, queue) = (clusters.clone(), queue.clone());
    let flavour = Arc::clone(flavour);
    config.subscribe(move |delta| {
        let wrong = match delta {
            Delta::Added(new) | Delta::Updated { new, .. } => {
                flavour.configure(new.body.spec.cluster_health_check.as_ref())
            }
            Delta::Deleted(_) => flavour.configure(None),
            Delta::ListStarts | Delta::ListEnds => return,
        };
        for problem in wrong {
            warn!(%problem, "A field of the KubeFedConfig is left to the flags");
        }
        if let Some(problem) = settings::odd(&flavour.policy()) {
            warn!(%problem, "The KubeFedConfig is odd");
        }
        clusters.frozen(|all| all.keys().for_each(|key| queue.add(Arc::clone(key))));
    })
}
