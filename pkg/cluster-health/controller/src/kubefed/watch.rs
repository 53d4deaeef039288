//! Watches KubeFedClusters, their Secrets and the KubeFedConfig: each change brings the members
//! concerned into the queue.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use futures::future::BoxFuture;
use informer::{Delta, Informer, Subscription};
use kube_api::{Kind, Metadata};
use manager::{Context, Failure, feed};
use objects::Object;
use tracing::warn;
use workqueue::{Backoff, Jitter, WorkQueue};

use super::flavour::KubeFed;
use super::resolve::KubeFedResolver;
use super::survey;
use crate::api::kubefed::{KUBEFED_CLUSTERS, KUBEFED_CONFIGS, KubeFedCluster, KubeFedConfig};
use crate::engine::{Pipeline, Registry, Source, subscribe};
use crate::missing_rights::Reading;
use crate::missing_rights::{denied, report};
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
        Box::pin(run(self, context, registry))
    }
}

/// Runs until the stop. No Secret is watched while the kind is not served.
async fn run(flavour: Arc<KubeFed>, context: Context, registry: Registry) -> Result<(), Failure> {
    let source = in_namespace(&context, Kind::Custom(KUBEFED_CLUSTERS), &flavour);
    let clusters: Clusters = context.informers.get_from(source);
    let schema_is_ours = context.informers.schema_is_ours(&KUBEFED_CLUSTERS);
    flavour.objects.set(&clusters, Arc::new(schema_is_ours));
    if let Some(metrics) = &flavour.upstream_metrics {
        metrics.show(&registry);
    }
    report(&context, vec![denied(&clusters)], MANIFEST);
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
    let secrets: Informer<Metadata> =
        context.informers.get_from(in_namespace(&context, Kind::BuiltIn(SECRETS), &flavour));
    let config = config_of(&flavour, &context);
    let add = queue.clone();
    let _of_clusters =
        subscribe(&clusters, &registry, &flavour, move |key| add.add(Arc::clone(key)));
    let of_secret = Arc::clone(&flavour);
    let _of_secrets =
        feed(&secrets, &queue, move |secret: &Metadata| of_secret.secrets_of.clusters(&secret.key));
    let _of_config = config
        .as_ref()
        .map(|config| on_config(config, &queue, &clusters, &flavour, &context.recorder));
    let client = context.clients.for_purpose("cluster-health-secrets", (-1.0, 1))?;
    if flavour.options.zones {
        let (flavour, registry) = (Arc::clone(&flavour), registry.clone());
        let (recorder, stop) = (context.recorder.clone(), context.stop.clone());
        context.spawn(survey::run(flavour, registry, recorder, stop));
    }
    let (known, told) = (secrets.clone(), registry.clone());
    let filled = async move {
        // rule:a-missing-right-is-no-failure
        known.synced_or_denied().await;
        told.serves();
        told.filled();
    };
    let refused = config.iter().map(denied).chain([denied(&secrets)]).collect();
    report(&context, refused, MANIFEST);
    let resolver = KubeFedResolver { flavour: Arc::clone(&flavour), secrets, client };
    let pipeline = Pipeline::new(flavour, resolver, registry, clusters.clone());
    let pipeline = Arc::new(Reading::new(pipeline, &context.stop));
    let mut run = context.run(&queue, pipeline).workers(WORKERS);
    if let Some(config) = config.clone() {
        run = run.start_after(async move { config.synced_or_denied().await });
    }
    run.start_filled(&clusters).start_after(filled).until_stopped().await?;
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

fn namespace_of(config: &Object<KubeFedConfig>) -> &str {
    config.metadata.namespace().unwrap_or_default()
}

fn reference(config: &Object<KubeFedConfig>) -> ObjectRef {
    let (kind, metadata) = (KUBEFED_CONFIGS, &config.metadata);
    let (namespace, name) = (namespace_of(config), metadata.name());
    ObjectRef::new(&kind.api_version(), &kind.kind, namespace, name, &metadata.uid)
}

/// `rule:kubefed-config-wins`
pub(super) fn on_config(
    config: &Informer<Object<KubeFedConfig>>,
    queue: &WorkQueue<Arc<str>>,
    clusters: &Clusters,
    flavour: &Arc<KubeFed>,
    recorder: &Recorder,
) -> Subscription<Object<KubeFedConfig>> {
    let (clusters, queue) = (clusters.clone(), queue.clone());
    let (flavour, recorder) = (Arc::clone(flavour), recorder.clone());
    config.subscribe(move |delta| {
        let (object, said) = match delta {
            Delta::Added(new) | Delta::Updated { new, .. } => {
                (new, new.body.spec.cluster_health_check.as_ref())
            }
            Delta::Deleted(old) => (old, None),
            Delta::ListStarts | Delta::ListEnds => return,
        };
        for problem in flavour.configure(namespace_of(object), said) {
            warn!(%problem, config = %object.metadata.key, "The KubeFedConfig has a mistake");
            recorder.event(reference(object), EventType::Warning, "InvalidHealthCheck", problem);
        }
        clusters.frozen(|all| all.keys().for_each(|key| queue.add(Arc::clone(key))));
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use probe::{ConnectionLimits, Meters, Names};
    use prometheus::Registry as Metrics;
    use serde_json::json;
    use tokio::sync::mpsc::unbounded_channel;
    use tokio::time::sleep;
    use workqueue::QueueMetrics;

    use super::*;
    use crate::engine::tests::scene::Scene;
    use crate::kubefed::testing::policy;
    use crate::options::KubeFedOptions;
    use crate::testing::informer;

    /// rule:kubefed-config-wins
    #[tokio::test(start_paused = true)]
    async fn a_mistake_in_the_config_is_told_by_an_event_about_it() {
        let engine = Scene::new(0);
        let meters = Meters::new(&Metrics::new()).unwrap();
        let members = probe::Prober::new(meters, ConnectionLimits::default(), Names::default());
        let options =
            KubeFedOptions { namespace: None, config: None, policy: policy(), zones: false };
        let flavour = Arc::new(KubeFed::new(options, false, Arc::new(members), None));
        let config = json!({
            "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig",
            "metadata": {"namespace": "fed", "name": "kubefed", "uid": "c", "resourceVersion": "1"},
            "spec": {"clusterHealthCheck": {"period": "1ms", "failureThreshold": 5}},
        });
        let ((_one, of_configs), (_other, of_clusters)) =
            (unbounded_channel(), unbounded_channel());
        let configs = informer(&KUBEFED_CONFIGS, vec![config], of_configs).await;
        let clusters = informer(&KUBEFED_CLUSTERS, vec![], of_clusters).await;
        let queue = WorkQueue::new("t", BACKOFF, &QueueMetrics::new(&Metrics::new()).unwrap());
        let recorder = &engine.fleet.recorder;
        let _heard = on_config(&configs, &queue, &clusters, &flavour, recorder);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(engine.api.events(), ["InvalidHealthCheck"]);
        let told = flavour.policy_in("fed");
        assert_eq!((told.cadence.period.as_secs(), told.thresholds.failure), (10, 5));
    }
}
