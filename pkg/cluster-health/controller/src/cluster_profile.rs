//! ClusterProfiles of the Cluster Inventory API: how each cluster is reached, and the part of its status that is ours.
//! Other programs own the objects and write the rest (`rule:a-shared-status-is-shared`).
//!
//! This file has the versions read, and the plugins run.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | the flags |
//! | `flavour.rs` | [`ClusterProfiles`]: what the objects mean |
//! | `access.rs` | how a cluster is reached |
//! | `providers.rs`, `plugins.rs` | the access providers; the exec plugins that print credentials |
//! | `versions.rs` | the versions of clusters; how one is read |
//! | `status.rs` | conditions and property, and reading them back |

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use events::{EventType, Recorder};
use futures::join;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use workqueue::WorkQueue;

use crate::engine::follow::read_facts;
use crate::engine::{Companions, Flavour as _, FlavourRegistry, Followed, MemberId, Work};
use crate::shared_flavour::{Shared, SharedSource};

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

/// Between looks for plugins that are due.
const ROUND: Duration = Duration::from_secs(1);
/// Versions read at the same time.
const AT_ONCE: usize = 16;

impl SharedSource for ClusterProfiles {
    const QUEUE: &'static str = "cluster_health_clusterprofile";
    const MANIFEST: &'static str = "config/rbac/cluster-health-clusterprofile.yaml";
    const SECRETS_MANIFEST: &'static str =
        "config/rbac/namespaces/member-secrets.yaml, in each namespace of ClusterProfiles";

    /// The reads of versions, and the exec plugins.
    fn companions(flavour: Arc<Self>, followed: &Followed<'_, Self>) -> Companions {
        let (registry, stop) = (followed.registry.clone(), followed.context.stop.clone());
        let (queue, recorder) = (followed.queue.clone(), followed.context.recorder.clone());
        let run = async move {
            let running = run_plugins(Arc::clone(&flavour), queue, recorder, stop.clone());
            join!(read_versions(flavour, registry, stop), running);
            Ok(())
        };
        Companions { ready: Box::pin(ready(())), run: Box::pin(run) }
    }
}

/// Reads the versions of ready clusters whose manager is one of ours, until `stop`.
async fn read_versions(
    flavour: Arc<ClusterProfiles>,
    registry: FlavourRegistry,
    stop: CancellationToken,
) {
    let due = || {
        let mut due = flavour.shared.connections.reachable();
        due.retain(|cluster| {
            let object = flavour.shared.objects.get(cluster);
            let is_managed = object.is_some_and(|it| flavour.is_manager_ours(&it));
            is_managed && registry.is_ready(cluster) && flavour.versions.begin(&cluster.uid)
        });
        due
    };
    let read = |cluster: MemberId| {
        let (flavour, registry) = (Arc::clone(&flavour), registry.clone());
        async move {
            let Shared { prober, connections, .. } = &flavour.shared;
            let version = versions::read(prober, connections, &cluster).await?;
            flavour.versions.set(&cluster.uid, version);
            registry.facts_changed(&cluster);
            Some(())
        }
    };
    read_facts(&registry, &stop, AT_ONCE, due, read).await;
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
            flavour.shared.connections.invalidate(&cluster.key);
            queue.add(Work::Cluster(cluster.key));
        }
        for run in flavour.plugins.take_due(|cluster| flavour.shared.connections.knows(cluster)) {
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
                flavour.shared.connections.invalidate(&cluster.key);
                queue.add(Work::Cluster(cluster.key));
            });
        }
    }
    under_way.close();
    under_way.wait().await;
}
