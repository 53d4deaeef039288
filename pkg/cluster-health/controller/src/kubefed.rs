//! KubeFed's members: how each is reached, how often it is probed, and what is written to it.
//!
//! This file watches the objects, their Secrets and the KubeFedConfig.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs` | [`KubeFed`]: the flavour, as the engine sees it |
//! | `access.rs` | how a member is reached, and how it is probed |
//! | `topology.rs`, `survey.rs` | zones, region and identity of a member; reading them |
//! | `upstream_metrics.rs` | [`UpstreamMetrics`], under the names of KubeFed's controller |
//! | `status.rs` | the conditions, and reading them back |

use std::sync::Arc;

use events::{EventType, Recorder};
use futures::future::BoxFuture;
use informer::{Delta, Informer, Subscription};
use kube_api::Kind;
use manager::{Context, Failure};
use objects::Object;
use tracing::warn;
use workqueue::WorkQueue;

use crate::api::kubefed::{KUBEFED_CONFIGS, KubeFedCluster, KubeFedConfig};
use crate::engine::follow::report;
use crate::engine::{
    Companions, FlavourRegistry, Followed, SecretScope, Source, Watched, Work, identity,
    in_namespace, watch_clusters,
};

pub(crate) mod access;
mod flavour;
mod status;
mod survey;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod topology;
mod upstream_metrics;

pub(crate) use flavour::KubeFed;
pub(crate) use upstream_metrics::UpstreamMetrics;

/// Grants what is read here.
const MANIFEST: &str = "config/rbac/cluster-health.yaml";
/// Secrets that are read at the same time: of 10,000 members in 15 s when each read takes 100 ms.
const WORKERS: usize = 64;

type Clusters = Informer<Object<KubeFedCluster>>;

impl Source for KubeFed {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: FlavourRegistry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        Box::pin(run(self, context, registry))
    }
}

async fn run(
    flavour: Arc<KubeFed>,
    context: Context,
    registry: FlavourRegistry,
) -> Result<(), Failure> {
    if let Some(metrics) = &flavour.upstream_metrics {
        metrics.show(&registry);
    }
    let namespace = flavour.options.namespace.clone();
    let watched = Watched {
        namespace: namespace.clone(),
        secrets: SecretScope::Namespace(namespace),
        credentials: None,
        manifest: MANIFEST,
        secrets_manifest: MANIFEST,
        queue: "kubefedclusters",
        workers: WORKERS,
        purpose: "cluster-health-secrets",
    };
    let of = Arc::clone(&flavour);
    watch_clusters(flavour, context, registry, watched, move |followed| companions(of, followed))
        .await
}

/// The KubeFedConfig, and the reads of zones and regions.
fn companions(flavour: Arc<KubeFed>, followed: &Followed<'_, KubeFed>) -> Companions {
    let Followed { context, registry, objects, queue } = *followed;
    let config = config_of(&flavour, context);
    let heard = config
        .as_ref()
        .map(|config| on_config(config, queue, objects, &flavour, &context.recorder));
    if let Some(config) = &config {
        report(context, config, MANIFEST);
    }
    let ready = async move {
        if let Some(config) = config {
            config.synced_or_denied().await;
        }
    };
    let (registry, recorder) = (registry.clone(), context.recorder.clone());
    let stop = context.stop.clone();
    let run = async move {
        let _heard = heard;
        if flavour.options.zones {
            survey::run(flavour, registry, recorder, stop).await;
        } else {
            stop.cancelled().await;
        }
        Ok(())
    };
    Companions { ready: Box::pin(ready), run: Box::pin(run) }
}

fn config_of(flavour: &KubeFed, context: &Context) -> Option<Informer<Object<KubeFedConfig>>> {
    let name = flavour.options.config.as_deref()?;
    let kind = Kind::Custom(KUBEFED_CONFIGS);
    let mut source = in_namespace(context, kind, flavour.options.namespace.as_ref());
    source.fields = Some(format!("metadata.name={name}").into());
    Some(context.informers.get_from(source))
}

pub(crate) fn on_config(
    config: &Informer<Object<KubeFedConfig>>,
    queue: &WorkQueue<Work>,
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
        let namespace = object.metadata.namespace().unwrap_or_default();
        for problem in flavour.configure(namespace, said) {
            warn!(%problem, config = %object.metadata.key, "A field of the KubeFedConfig is invalid");
            let reference = identity(object).object_ref(&KUBEFED_CONFIGS);
            recorder.event(reference, EventType::Warning, "InvalidHealthCheck", problem);
        }
        clusters.frozen(|all| all.keys().for_each(|key| queue.add(Work::Cluster(Arc::clone(key)))));
    })
}

#[cfg(test)]
mod config_tests {
    use std::time::Duration;

    use prometheus::Registry as Metrics;
    use serde_json::json;
    use tokio::sync::mpsc::unbounded_channel;
    use tokio::time::sleep;
    use workqueue::{Backoff, Jitter, QueueMetrics};

    use super::*;
    use crate::api::kubefed::KUBEFED_CLUSTERS;
    use crate::engine::tests::scene::Scene;
    use crate::kubefed::testing::flavour;
    use crate::testing::informer;

    #[tokio::test(start_paused = true)]
    async fn a_mistake_in_the_config_is_told_by_an_event_about_it() {
        let engine = Scene::new(0);
        let flavour = Arc::new(flavour(false));
        let config = json!({
            "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig",
            "metadata": {"namespace": "fed", "name": "kubefed", "uid": "c", "resourceVersion": "1"},
            "spec": {"clusterHealthCheck": {"period": "1ms", "failureThreshold": 5}},
        });
        let ((_one, of_configs), (_other, of_clusters)) =
            (unbounded_channel(), unbounded_channel());
        let configs = informer(&KUBEFED_CONFIGS, vec![config], of_configs).await;
        let clusters = informer(&KUBEFED_CLUSTERS, vec![], of_clusters).await;
        let wait = Duration::from_secs(1);
        let backoff = Backoff::doubling(wait, wait, Jitter::Above(0.5));
        let queue = WorkQueue::new("t", backoff, &QueueMetrics::new(&Metrics::new()).unwrap());
        let recorder = &engine.clusters.recorder;
        let _heard = on_config(&configs, &queue, &clusters, &flavour, recorder);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(engine.api.events(), ["InvalidHealthCheck"]);
        let told = flavour.policy_in("fed");
        assert_eq!((told.cadence.period.as_secs(), told.thresholds.failure), (10, 5));
    }
}
