//! [`Ward`]: takes in what is learnt of the Machines of a Cluster, tells of it and has it written.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use health::{Moment, Status};
use model::Resource;
use objects::Object;

use super::book::{Book, identity};
use super::record::{Record, Turn, Want};
use super::standing::{Cause, Found};
use super::status::{Written, is_live, locked, seed};
use crate::api::tke::{MACHINES, Machine};
use crate::engine::{self, Pending, Registry, SchemaIsOurs, StatusWrite};
use crate::tke::options::TkeOptions;
use crate::tke::summary::Roster;

/// The kind, for the engine.
pub(crate) static KIND: [Resource; 1] = [MACHINES];

/// Reads a Machine by its name.
pub(crate) type Lookup = Box<dyn Fn(&str) -> Option<Arc<Object<Machine>>> + Send + Sync>;

/// The Machines of all Clusters.
pub(crate) struct Ward {
    pub(crate) book: Book,
    lookup: Lookup,
    schema_is_ours: SchemaIsOurs,
    registry: Registry,
    recorder: Recorder,
    options: Arc<TkeOptions>,
}

impl Ward {
    pub(crate) fn new(
        (lookup, schema_is_ours): (Lookup, SchemaIsOurs),
        registry: Registry,
        recorder: Recorder,
        options: Arc<TkeOptions>,
    ) -> Self {
        Self { book: Book::default(), lookup, schema_is_ours, registry, recorder, options }
    }

    /// The object is gone: nothing of it is written any more.
    pub(crate) fn gone(&self, machine: &Object<Machine>) {
        self.book.forget(machine);
        self.registry.forget_write(&machine.metadata.uid);
    }

    /// What to look for in a list of the Nodes of `cluster`: its Machines.
    pub(crate) fn roster(&self, cluster: &str) -> Roster {
        let machines = self.book.of(cluster).into_iter();
        let machines: Vec<_> = machines.filter_map(|machine| self.live(&machine)).collect();
        Roster::wanting(machines.iter().map(|machine| &*machine.body.spec.ip))
    }

    /// A list of the Nodes of `cluster` came in; each of its Machines that was looked for is judged
    /// by it. One that came meanwhile brings a list of its own.
    pub(crate) fn observe(self: &Arc<Self>, cluster: &str, roster: &Roster, now: Moment) {
        let (thresholds, ready) =
            (self.options.policy.thresholds, self.options.machine_require_node_ready);
        let (heartbeat, spacing) = (self.options.policy.heartbeat, self.spacing());
        self.each(cluster, heartbeat, now, |record, machine| {
            if !roster.wanted(&machine.body.spec.ip) {
                return None;
            }
            let found = Found::by(roster, &machine.body.spec.ip, ready);
            record.observe(found, thresholds, spacing, now)
        });
    }

    /// The Nodes of `cluster` could not be listed.
    pub(crate) fn not_listed(self: &Arc<Self>, cluster: &str, why: &str, now: Moment) {
        let (heartbeat, spacing) = (self.options.policy.heartbeat, self.spacing());
        let thresholds = self.options.policy.thresholds;
        self.each(cluster, heartbeat, now, |record, _| {
            record.not_listed(why, thresholds, spacing, now)
        });
    }

    /// Between two failures that count as two.
    fn spacing(&self) -> Duration {
        self.options.machine_confirm() / 2
    }

    /// Nobody can say how the Machines of `cluster` are.
    pub(crate) fn unknown(
        self: &Arc<Self>,
        cluster: &str,
        (cause, message): (Cause, &str),
        heartbeat: Duration,
        now: Moment,
    ) {
        self.each(cluster, heartbeat, now, |record, _| record.unknown(cause, message, now));
    }

    /// Others speak for the Machines of `cluster`: nothing is remembered of them or written.
    pub(crate) fn release(&self, cluster: &str) {
        for machine in self.book.of(cluster) {
            self.book.with(cluster, &machine, |record| *record = None);
            self.registry.forget_write(&machine.uid);
        }
    }

    /// What the Machines of `cluster` wait for; `None` when none of them is looked after.
    pub(crate) fn want(&self, cluster: &str) -> Option<Want> {
        let wants = self.book.of(cluster).into_iter().filter_map(|machine| {
            let object = self.live(&machine)?;
            let wants =
                |record: &mut Option<Record>| record.as_ref().map_or(Want::Anything, Record::wants);
            let want = self.book.with(cluster, &machine, wants)?;
            // Of one that is not to be touched nothing is asked.
            Some(if locked(&object).is_some() { Want::NothingNew } else { want })
        });
        wants.max()
    }

    fn live(&self, machine: &engine::Cluster) -> Option<Arc<Object<Machine>>> {
        let object = (self.lookup)(&machine.key)?;
        (object.metadata.uid == machine.uid && is_live(&object)).then_some(object)
    }

    fn each(
        self: &Arc<Self>,
        cluster: &str,
        heartbeat: Duration,
        now: Moment,
        mut learn: impl FnMut(&mut Record, &Object<Machine>) -> Option<Turn>,
    ) {
        for machine in self.book.of(cluster) {
            let Some(object) = self.live(&machine) else {
                // Whoever works on it speaks for it; later its object tells where to go on.
                self.book.with(cluster, &machine, |record| *record = None);
                continue;
            };
            let pending = self.registry.writes(&machine.uid);
            let learnt = self.book.with(cluster, &machine, |slot| {
                let record = slot.get_or_insert_with(|| record_of(&object, heartbeat, now));
                record.at(&object.body.spec.ip);
                let turn = match locked(&object) {
                    Some(cause) => record.unknown(cause, "the machine is locked", now),
                    None => learn(record, &object),
                };
                let published = record.published()?.clone();
                let shown = (!pending).then(|| Written::shown(&object).fingerprint());
                let fingerprint = Written::new(&object, &published).fingerprint();
                let urgency = record.write_due(fingerprint, shown, heartbeat, now.monotonic);
                Some((turn, published.message, urgency))
            });
            let Some((turn, message, urgency)) = learnt.flatten() else { continue };
            self.tell(&object, turn, message);
            if let Some(urgency) = urgency {
                let shard = self.registry.uid(cluster).unwrap_or_else(|| cluster.into());
                let (ward, cluster) = (Arc::clone(self), cluster.into());
                let write = Write { ward, cluster, shard, machine };
                self.registry.write(Arc::new(write), urgency);
            }
        }
    }

    /// `rule:events-follow-what-is-published`. That nobody knows is told of the Cluster, once.
    fn tell(&self, machine: &Object<Machine>, turn: Option<Turn>, message: String) {
        let Some(Turn { from, to }) = turn else { return };
        let (kind, reason) = match (from, to) {
            (Some(Status::False), Status::True) => (EventType::Normal, "MachineReady"),
            (Some(Status::True) | None, Status::False) => (EventType::Warning, "MachineNotReady"),
            _ => return,
        };
        let (resource, metadata) = (MACHINES, &machine.metadata);
        let (version, name) = (resource.api_version(), metadata.name());
        let object = ObjectRef::new(&version, &resource.kind, "", name, &metadata.uid);
        self.recorder.event(object, kind, reason, message);
    }
}

/// Of a Machine that is new to this process.
fn record_of(object: &Object<Machine>, heartbeat: Duration, now: Moment) -> Record {
    let (uid, ip) = (&object.metadata.uid, &object.body.spec.ip);
    let (published, shown) = (seed(object, now.wall), Written::shown(object).fingerprint());
    Record::new(uid, ip, published, shown, heartbeat, now.monotonic)
}

/// A Machine whose status waits to be written.
struct Write {
    ward: Arc<Ward>,
    cluster: Arc<str>,
    /// UID of the Cluster; its name, when this process does not probe it: all replicas agree on it.
    shard: Arc<str>,
    machine: engine::Cluster,
}

impl Pending for Write {
    fn flavour(&self) -> &'static str {
        "tke"
    }

    fn resource(&self) -> &'static Resource {
        let [kind] = &KIND;
        kind
    }

    fn object(&self) -> &engine::Cluster {
        &self.machine
    }

    fn shard(&self) -> &Arc<str> {
        &self.shard
    }

    fn period(&self) -> Duration {
        self.ward.options.machine_period
    }

    fn write(&self, _: Moment) -> Option<StatusWrite> {
        let object = self.ward.live(&self.machine)?;
        let published = |record: &mut Option<Record>| record.as_ref()?.published().cloned();
        let published = self.ward.book.with(&self.cluster, &self.machine, published)??;
        let fields = Written::new(&object, &published).fields(&object);
        Some(StatusWrite::of(&object, fields, (self.ward.schema_is_ours)()))
    }
}

/// For the feeds: whose Machine it is.
pub(crate) fn cluster_of(machine: &Object<Machine>) -> Arc<str> {
    Arc::from(&*machine.body.spec.cluster_name)
}

/// Whether an object moved from one Cluster to another.
pub(crate) fn moved(old: &Object<Machine>, new: &Object<Machine>) -> bool {
    identity(old) == identity(new) && old.body.spec.cluster_name != new.body.spec.cluster_name
}
