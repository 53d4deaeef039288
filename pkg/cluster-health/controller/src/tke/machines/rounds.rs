//! [`MachineReconciler`]: observes the Machines of each Cluster, period by period. The keys of its
//! queue are names of Clusters.

use std::sync::Arc;
use std::time::Duration;

use objects::Object;
use rand::RngExt as _;
use workqueue::{Next, Reconcile, Retry};

use super::health::MachineHealth;
use super::host::ParentCluster;
use super::state::{NextList, UnknownReason};
use crate::api::tke;
use crate::engine::{Registry, identity, now};
use crate::tke::TkeOptions;
use crate::tke::cluster_states::ClusterStates;
use crate::tke::node_lists::NodeLists;

/// The heartbeat of a status that is written once: longer than any process lives.
const ONCE: Duration = Duration::from_secs(1 << 32);

/// Reads a Cluster by its name.
pub(crate) type ClusterLookup =
    Box<dyn Fn(&str) -> Option<Arc<Object<tke::Cluster>>> + Send + Sync>;

/// Observes the Machines of one Cluster at a time.
pub(crate) struct MachineReconciler {
    pub(crate) clusters: ClusterLookup,
    pub(crate) states: Arc<ClusterStates>,
    pub(crate) registry: Registry,
    pub(crate) options: Arc<TkeOptions>,
    pub(crate) machines: Arc<MachineHealth>,
    pub(crate) lists: Arc<NodeLists>,
}

impl Reconcile for MachineReconciler {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let cluster = (self.clusters)(name);
        let id = cluster.as_ref().map(|it| identity(it));
        let readiness = id.as_ref().and_then(|id| self.registry.readiness(id));
        let known = id.as_ref().is_some_and(|id| self.registry.knows(id));
        if let Some(id) = &id {
            self.states.known(id, |entry| entry.machines_saw = readiness);
        }
        let Some(next) = self.machines.next_list(name) else { return Ok(Next::Done) };
        match (ParentCluster::of(name, cluster.as_deref(), known, readiness), cluster) {
            (ParentCluster::Healthy, Some(cluster)) => self.list(&cluster, next).await,
            (ParentCluster::Healthy | ParentCluster::Undecided, _) => self.machines.release(name),
            (ParentCluster::Unhealthy(why), _) => {
                let heartbeat = self.options.policy.heartbeat;
                self.machines.unknown(
                    name,
                    (UnknownReason::ClusterUnhealthy, &why),
                    heartbeat,
                    now(),
                );
            }
            // rule:machines-without-a-cluster-have-one-replica
            (ParentCluster::Unsupervised(..), _) if !self.registry.is_ours(name) => {
                self.machines.release(name);
            }
            (ParentCluster::Unsupervised(cause, why), _) => {
                self.machines.unknown(name, (cause, &why), ONCE, now());
            }
        }
        Ok(self.next(name))
    }
}

impl MachineReconciler {
    async fn list(&self, cluster: &Object<tke::Cluster>, next: NextList) {
        let cluster = identity(cluster);
        let Some((client, target)) = self.states.target(&cluster) else { return };
        // A list that another task made since the last round is new enough.
        let max_age = match next {
            NextList::Immediate => Duration::ZERO,
            NextList::Confirmation => self.options.machine_confirm() / 2,
            NextList::Regular => self.options.machine_period / 2,
        };
        // Errors are taken in where the list is read.
        let _listed = self.lists.totals(&cluster, &client, target, max_age).await;
    }

    fn next(&self, name: &str) -> Next {
        let period = self.options.machine_period;
        let wait = match self.machines.next_list(name) {
            None => return Next::Done,
            Some(NextList::Confirmation) => self.options.machine_confirm(),
            Some(NextList::Regular | NextList::Immediate) => period,
        };
        Next::After(wait.mul_f64(rand::rng().random_range(0.9..1.1)))
    }
}
