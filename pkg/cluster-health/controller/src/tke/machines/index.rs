//! [`MachineIndex`]: the Machines of each Cluster, with the state of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use objects::Object;
use parking_lot::Mutex;

use super::state::MachineState;
use crate::api::tke::Machine;
use crate::engine::{self, identity};

/// The Machines of one Cluster, by name.
type Machines = BTreeMap<Arc<str>, ClusterState>;

/// All Machines, by the name of their Cluster.
#[derive(Default)]
pub(crate) struct MachineIndex {
    clusters: Mutex<HashMap<Arc<str>, Machines>>,
}

/// One Machine.
struct ClusterState {
    uid: Arc<str>,
    /// `None` until the first list of Nodes, or another event of its Cluster.
    state: Option<MachineState>,
}

impl MachineIndex {
    /// Takes in an object that was added or updated.
    pub(crate) fn insert(&self, machine: &Object<Machine>) {
        let engine::Cluster { uid, key } = identity(machine);
        let mut clusters = self.clusters.lock();
        let machines = clusters.entry(machine.body.spec.cluster_name.as_str().into()).or_default();
        let entry = machines
            .entry(key)
            .or_insert_with(|| ClusterState { uid: Arc::clone(&uid), state: None });
        if entry.uid != uid {
            *entry = ClusterState { uid, state: None };
        }
    }

    /// Removes an object that was deleted, or belongs to another Cluster now.
    pub(crate) fn remove(&self, machine: &Object<Machine>) {
        let engine::Cluster { uid, key } = identity(machine);
        let mut clusters = self.clusters.lock();
        let cluster = &*machine.body.spec.cluster_name;
        let Some(machines) = clusters.get_mut(cluster) else { return };
        if machines.get(&key).is_some_and(|entry| entry.uid == uid) {
            machines.remove(&key);
        }
        if machines.is_empty() {
            clusters.remove(cluster);
        }
    }

    /// The Machines of a Cluster.
    pub(crate) fn of(&self, cluster: &str) -> Vec<engine::Cluster> {
        let clusters = self.clusters.lock();
        let identity = |(key, entry): (&Arc<str>, &ClusterState)| engine::Cluster {
            uid: Arc::clone(&entry.uid),
            key: Arc::clone(key),
        };
        clusters.get(cluster).into_iter().flatten().map(identity).collect()
    }

    /// Reads or changes the state of a Machine; `None` when the Machine is not in the index.
    pub(crate) fn with<R>(
        &self,
        cluster: &str,
        machine: &engine::Cluster,
        edit: impl FnOnce(&mut Option<MachineState>) -> R,
    ) -> Option<R> {
        let mut clusters = self.clusters.lock();
        let entry = clusters.get_mut(cluster)?.get_mut(&machine.key)?;
        (entry.uid == machine.uid).then(|| edit(&mut entry.state))
    }
}
