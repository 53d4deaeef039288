//! ClusterProfiles of the Cluster Inventory API: how each cluster is reached, and the part of its status that is ours.
//! Other programs own the objects and write the rest (`rule:a-shared-status-is-shared`).
//!
//! This file watches the objects and their Secrets, and has the versions read.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | the flags |
//! | `flavour.rs` | [`ClusterProfiles`]: the flavour, as the engine sees it |
//! | `access.rs` | how a cluster is reached |
//! | `providers.rs`, `plugins.rs` | the access providers; the exec plugins that print credentials |
//! | `versions.rs` | the versions of clusters; how one is read |
//! | `status.rs` | conditions and property, and reading them back |

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use events::{EventType, Recorder};
use futures::future::BoxFuture;
use futures::join;
use manager::{Context, Failure};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use workqueue::WorkQueue;

use crate::api::cluster_profile::{CLUSTER_PROFILES, CRD};
use crate::engine::{
    Companions, Flavour as _, FlavourRegistry, Followed, SecretScope, SharedKind, Source, Watched,
    Work, watch_shared_clusters,
};

pub(crate) mod access;
mod flavour;
pub(crate) mod options;
mod plugins;
pub(crate) mod providers;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod versions;

pub(crate) use flavour::ClusterProfiles;
pub(crate) use plugins::PluginCounter;

/// Grants what is read and written here.
const MANIFEST: &str = "config/rbac/cluster-health-clusterprofile.yaml";
/// Grants the Secrets of one namespace.
const MANIFEST_OF_SECRETS: &str =
    "config/rbac/namespaces/member-secrets.yaml, in each namespace of ClusterProfiles";
/// Secrets that are read at the same time.
const WORKERS: usize = 64;
/// Between looks for versions and plugins that are due.
const ROUND: Duration = Duration::from_secs(1);
/// Versions read at the same time.
const AT_ONCE: usize = 16;

impl Source for ClusterProfiles {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: FlavourRegistry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let watched = Watched {
            namespace: self.options.watched_namespace(),
            secrets: SecretScope::InUse,
            credentials: None,
            manifest: MANIFEST,
            secrets_manifest: MANIFEST_OF_SECRETS,
            queue: "cluster_health_clusterprofile",
            workers: WORKERS,
            purpose: "cluster-health-secrets",
        };
        let watched = (watched, SharedKind { crd: CRD, versions: &CLUSTER_PROFILES });
        let (served, of) = (Arc::clone(&self), Arc::clone(&self));
        let serve = move |kind| served.serve(kind);
        let companions = move |followed: &Followed<'_, Self>| companions(of, followed);
        Box::pin(watch_shared_clusters(self, context, registry, watched, serve, companions))
    }
}

/// The reads of versions, and the exec plugins.
fn companions(
    flavour: Arc<ClusterProfiles>,
    followed: &Followed<'_, ClusterProfiles>,
) -> Companions {
    let (registry, stop) = (followed.registry.clone(), followed.context.stop.clone());
    let (queue, recorder) = (followed.queue.clone(), followed.context.recorder.clone());
    let run = async move {
        let running = run_plugins(Arc::clone(&flavour), queue, recorder, stop.clone());
        join!(read_versions(flavour, registry, stop), running);
        Ok(())
    };
    Companions { ready: Box::pin(ready(())), run: Box::pin(run) }
}

/// Reads the versions of ready clusters whose manager is one of ours, apart from all probing, until `stop`.
async fn read_versions(
    flavour: Arc<ClusterProfiles>,
    registry: FlavourRegistry,
    stop: CancellationToken,
) {
    let (slots, under_way) = (Arc::new(Semaphore::new(AT_ONCE)), TaskTracker::new());
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        for cluster in flavour.connections.reachable() {
            let is_wanted = flavour.is_managed(&cluster) && registry.is_ready(&cluster);
            let Some(life) = registry.life(&cluster).filter(|_| is_wanted) else { continue };
            if !flavour.versions.begin(&cluster.uid) {
                continue;
            }
            let (flavour, registry, slots) =
                (Arc::clone(&flavour), registry.clone(), Arc::clone(&slots));
            under_way.spawn(async move {
                let read = async {
                    let _slot = slots.acquire().await;
                    versions::read(&flavour.prober, &flavour.connections, &cluster).await
                };
                // Ends with the cluster, and at a stop (`rule:nothing-outlives-its-object`).
                if let Some(Some(version)) = life.run_until_cancelled(read).await {
                    flavour.versions.set(&cluster.uid, version);
                    registry.facts_changed(&cluster);
                }
            });
        }
    }
    under_way.close();
    under_way.wait().await;
}

/// Runs the exec plugins that are due, apart from all probing, until `stop`, and has the members looked at whose
/// credentials may be other ones.
async fn run_plugins(
    flavour: Arc<ClusterProfiles>,
    queue: WorkQueue<Work>,
    recorder: Recorder,
    stop: CancellationToken,
) {
    let under_way = TaskTracker::new();
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = rounds.tick() => {}
            () = flavour.plugins.demanded() => {}
        }
        for cluster in flavour.plugins.take_ended() {
            flavour.connections.invalidate(&cluster.key);
            queue.add(Work::Cluster(cluster.key));
        }
        for run in flavour.plugins.take_due(|cluster| flavour.connections.knows(cluster)) {
            let (flavour, queue, recorder) =
                (Arc::clone(&flavour), queue.clone(), recorder.clone());
            let stop = stop.clone();
            under_way.spawn(async move {
                let cluster = run.cluster.clone();
                let made = stop.run_until_cancelled(flavour.plugins.make(run)).await;
                let Some((true, failure)) = made else { return };
                if let Some(error) = failure {
                    let object = cluster.object_ref(flavour.resource());
                    let text = format!("cannot get a credential of the cluster: {error}");
                    recorder.event(object, EventType::Warning, "AccessPluginFailed", text);
                }
                flavour.connections.invalidate(&cluster.key);
                queue.add(Work::Cluster(cluster.key));
            });
        }
    }
    under_way.close();
    under_way.wait().await;
}
