//! Machines: whether each is a Node of its Cluster, and a ready one. [`MachineHealth`] turns lists of
//! Nodes into states, events and writes; [`MachineIndex`] has the Machines of each Cluster, with the
//! state of each.
//!
//! All Machines of a Cluster are judged by one list of its Nodes. What a list says of a Machine
//! counts as the probe of a Cluster does, with the same thresholds; nothing here asks for a Node by
//! itself.
//!
//! | file | holds |
//! |---|---|
//! | `state.rs` | [`MachineState`]: one Machine, and what each list does to it |
//! | `status.rs` | what is written, and what is read back after a restart |

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use events::{EventType, Recorder};
use health::{Change, Moment, Policy, Status};
use kube_api::Resource;
use objects::Object;
use parking_lot::Mutex;

use state::{MachineState, Observation};
use status::{Written, seed};

use super::summary::Roster;
use crate::api::tke::{MACHINES, Machine};
use crate::engine::{self, FlavourRegistry, Pending, SchemaIsOurs, StatusWrite, identity};
use crate::options::TkeOptions;

mod state;
mod status;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use state::{NextList, UnknownReason};
pub(crate) use status::{is_live, is_locked};

/// The kind, for the engine.
pub(crate) static KIND: [Resource; 1] = [MACHINES];

/// Reads a Machine by its name.
pub(crate) type Lookup = Box<dyn Fn(&str) -> Option<Arc<Object<Machine>>> + Send + Sync>;

/// The health of the Machines of all Clusters.
pub(crate) struct MachineHealth {
    pub(crate) index: MachineIndex,
    lookup: Lookup,
    schema_is_ours: SchemaIsOurs,
    registry: FlavourRegistry,
    recorder: Recorder,
    options: Arc<TkeOptions>,
    policy: Policy,
}

impl MachineHealth {
    pub(crate) fn new(
        (lookup, schema_is_ours): (Lookup, SchemaIsOurs),
        registry: FlavourRegistry,
        recorder: Recorder,
        options: Arc<TkeOptions>,
    ) -> Self {
        let policy = state::policy(&options);
        let index = MachineIndex::default();
        Self { index, lookup, schema_is_ours, registry, recorder, options, policy }
    }

    /// Forgets a Machine that was deleted, and its pending write.
    pub(crate) fn removed(&self, machine: &Object<Machine>) {
        self.index.remove(machine);
        self.registry.forget_write(&machine.metadata.uid);
    }

    /// The Machines of `cluster`, to be looked up in a list of its Nodes.
    pub(crate) fn roster(&self, cluster: &str) -> Roster {
        let machines = self.index.of(cluster).into_iter();
        let machines: Vec<_> = machines.filter_map(|machine| self.live(&machine)).collect();
        Roster::wanting(machines.iter().map(|machine| &*machine.body.spec.ip))
    }

    /// Takes in a list of the Nodes of `cluster`. A Machine that was created after the list began is
    /// skipped: its creation brings another list.
    pub(crate) fn observe(self: &Arc<Self>, cluster: &str, roster: &Roster, now: Moment) {
        let (policy, require_ready) = (&self.policy, self.options.machine_require_node_ready);
        self.each(cluster, policy, now, |state, machine| {
            if !roster.wanted(&machine.body.spec.ip) {
                return Change::Nothing;
            }
            let observation = Observation::by(roster, &machine.body.spec.ip, require_ready);
            state.observe(observation, policy, now)
        });
    }

    /// Takes in that the Nodes of `cluster` could not be listed.
    pub(crate) fn not_listed(self: &Arc<Self>, cluster: &str, why: &str, now: Moment) {
        let policy = &self.policy;
        self.each(cluster, policy, now, |state, _| state.not_listed(why, policy, now));
    }

    /// Publishes the Machines of `cluster` as unknown.
    pub(crate) fn unknown(
        self: &Arc<Self>,
        cluster: &str,
        (reason, message): (UnknownReason, &str),
        heartbeat: Duration,
        now: Moment,
    ) {
        let policy = Policy { heartbeat, ..self.policy };
        self.each(cluster, &policy, now, |state, _| state.unknown(reason, message, now));
    }

    /// Forgets the state of the Machines of `cluster` and their pending writes: another replica
    /// writes them.
    pub(crate) fn release(&self, cluster: &str) {
        for machine in self.index.of(cluster) {
            self.index.with(cluster, &machine, |state| *state = None);
            self.registry.forget_write(&machine.uid);
        }
    }

    /// When the Machines of `cluster` need the next list of its Nodes; `None` when it has no live
    /// Machine.
    pub(crate) fn next_list(&self, cluster: &str) -> Option<NextList> {
        let needs = self.index.of(cluster).into_iter().filter_map(|machine| {
            let object = self.live(&machine)?;
            let next = self.index.with(cluster, &machine, |state| {
                state.as_ref().map_or(NextList::Immediate, MachineState::next_list)
            })?;
            Some(if is_locked(&object) { NextList::Regular } else { next })
        });
        needs.max()
    }

    fn live(&self, machine: &engine::MemberId) -> Option<Arc<Object<Machine>>> {
        let object = (self.lookup)(&machine.key)?;
        (object.metadata.uid == machine.uid && is_live(&object)).then_some(object)
    }

    fn each(
        self: &Arc<Self>,
        cluster: &str,
        policy: &Policy,
        now: Moment,
        mut observe: impl FnMut(&mut MachineState, &Object<Machine>) -> Change,
    ) {
        for machine in self.index.of(cluster) {
            let Some(object) = self.live(&machine) else {
                // Another actor owns this phase; drop our state and reseed later.
                self.index.with(cluster, &machine, |state| *state = None);
                continue;
            };
            let pending = self.registry.writes(&machine.uid);
            let outcome = self.index.with(cluster, &machine, |slot| {
                let state = slot.get_or_insert_with(|| new_state(&object, policy, now));
                state.set_address(&object.body.spec.ip, now.monotonic);
                let change = if is_locked(&object) {
                    state.unknown(UnknownReason::Locked, "the machine is locked", now)
                } else {
                    observe(state, &object)
                };
                let published = state.published()?;
                let shown = (!pending).then(|| Written::shown(&object).fingerprint());
                let fingerprint = Written::new(&object, &published).fingerprint();
                let urgency = state.write_due(fingerprint, shown, policy, now.monotonic);
                Some((change, published.message().to_owned(), urgency))
            });
            let Some((change, message, urgency)) = outcome.flatten() else { continue };
            self.record_event(&object, change, message);
            if let Some(urgency) = urgency {
                let shard = self.registry.uid(cluster).unwrap_or_else(|| cluster.into());
                let (health, cluster) = (Arc::clone(self), cluster.into());
                let write = Write { health, cluster, shard, machine };
                self.registry.write(Arc::new(write), urgency);
            }
        }
    }

    /// Records published transitions. Unknown has no event:
    /// that of the Cluster stands for all its Machines.
    fn record_event(&self, machine: &Object<Machine>, change: Change, message: String) {
        let Change::Ready { from, to } = change else { return };
        let (kind, reason) = match (from, to) {
            (Some(Status::False), Status::True) => (EventType::Normal, "MachineReady"),
            (Some(Status::True) | None, Status::False) => (EventType::Warning, "MachineNotReady"),
            _ => return,
        };
        self.recorder.event(identity(machine).object_ref(&MACHINES), kind, reason, message);
    }
}

/// The state of a Machine that is new to this process.
fn new_state(object: &Object<Machine>, policy: &Policy, now: Moment) -> MachineState {
    let (uid, ip) = (&object.metadata.uid, &object.body.spec.ip);
    let (published, shown) = (seed(object, now.wall), Written::shown(object).fingerprint());
    MachineState::new(uid, ip, published, shown, policy, now.monotonic)
}

/// A Machine whose status waits to be written.
struct Write {
    health: Arc<MachineHealth>,
    cluster: Arc<str>,
    /// UID of the Cluster; its name, when this process does not probe it: all replicas agree on it.
    shard: Arc<str>,
    machine: engine::MemberId,
}

impl Pending for Write {
    fn flavour(&self) -> &'static str {
        "tke"
    }

    fn resource(&self) -> &'static Resource {
        let [kind] = &KIND;
        kind
    }

    fn object(&self) -> &engine::MemberId {
        &self.machine
    }

    fn shard(&self) -> &Arc<str> {
        &self.shard
    }

    fn period(&self) -> Duration {
        self.health.options.machine_period
    }

    fn write(&self, _: Moment) -> Option<StatusWrite> {
        let object = self.health.live(&self.machine)?;
        let published = |state: &mut Option<MachineState>| state.as_ref()?.published();
        let published = self.health.index.with(&self.cluster, &self.machine, published)??;
        let fields = Written::new(&object, &published).fields(&object);
        Some(StatusWrite::of(&object, fields, (self.health.schema_is_ours)()))
    }
}

/// The name of the Cluster of a Machine.
pub(crate) fn cluster_of(machine: &Object<Machine>) -> Arc<str> {
    Arc::from(&*machine.body.spec.cluster_name)
}

/// Whether an object moved from one Cluster to another.
pub(crate) fn moved(old: &Object<Machine>, new: &Object<Machine>) -> bool {
    identity(old) == identity(new) && old.body.spec.cluster_name != new.body.spec.cluster_name
}

/// The Machines of one Cluster, by name.
type Machines = BTreeMap<Arc<str>, IndexedMachine>;

/// All Machines, by the name of their Cluster.
#[derive(Default)]
pub(crate) struct MachineIndex {
    clusters: Mutex<HashMap<Arc<str>, Machines>>,
}

/// One Machine.
struct IndexedMachine {
    uid: Arc<str>,
    /// `None` until the first list of Nodes, or another event of its Cluster.
    state: Option<MachineState>,
}

impl MachineIndex {
    /// Takes in an object that was added or updated.
    pub(crate) fn insert(&self, machine: &Object<Machine>) {
        let engine::MemberId { uid, key } = identity(machine);
        let mut clusters = self.clusters.lock();
        let machines = clusters.entry(machine.body.spec.cluster_name.as_str().into()).or_default();
        let entry = machines
            .entry(key)
            .or_insert_with(|| IndexedMachine { uid: Arc::clone(&uid), state: None });
        if entry.uid != uid {
            *entry = IndexedMachine { uid, state: None };
        }
    }

    /// Removes an object that was deleted, or belongs to another Cluster now.
    pub(crate) fn remove(&self, machine: &Object<Machine>) {
        let engine::MemberId { uid, key } = identity(machine);
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
    pub(crate) fn of(&self, cluster: &str) -> Vec<engine::MemberId> {
        let clusters = self.clusters.lock();
        let identity = |(key, entry): (&Arc<str>, &IndexedMachine)| engine::MemberId {
            uid: Arc::clone(&entry.uid),
            key: Arc::clone(key),
        };
        clusters.get(cluster).into_iter().flatten().map(identity).collect()
    }

    /// Reads or changes the state of a Machine; `None` when the Machine is not in the index.
    pub(crate) fn with<R>(
        &self,
        cluster: &str,
        machine: &engine::MemberId,
        edit: impl FnOnce(&mut Option<MachineState>) -> R,
    ) -> Option<R> {
        let mut clusters = self.clusters.lock();
        let entry = clusters.get_mut(cluster)?.get_mut(&machine.key)?;
        (entry.uid == machine.uid).then(|| edit(&mut entry.state))
    }
}
