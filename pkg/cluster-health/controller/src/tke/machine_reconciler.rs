//! [`MachineReconciler`]: observes the Machines of each Cluster, period by period, and after each change
//! among them; the keys of its queue are names of Clusters. [`ParentCluster`] says whether the Machines
//! of a Cluster can be observed.

use std::sync::Arc;
use std::time::Duration;

use health::Status;
use informer::{Delta, Informer, Subscription};
use manager::{Context, Failure};
use objects::Object;
use resilience::draw;
use workqueue::{Next, Reconcile, Retry, WorkQueue};

use super::machines::{
    Lookup, MachineHealth, NextList, UnknownReason, cluster_of, is_live, is_locked, moved,
};
use super::node_lists::NodeLists;
use super::status::supervision;
use crate::api::tke::{self, Cluster, Machine};
use crate::engine::follow::Reading;
use crate::engine::{Supervision, identity, now};

/// The heartbeat of a status that is written once: longer than any process lives.
const ONCE: Duration = Duration::from_secs(1 << 32);

/// Reads a Cluster by its name.
pub(crate) type ClusterLookup =
    Box<dyn Fn(&str) -> Option<Arc<Object<tke::Cluster>>> + Send + Sync>;

/// Observes the Machines of one Cluster at a time.
pub(crate) struct MachineReconciler {
    pub(crate) clusters: ClusterLookup,
    pub(crate) lists: Arc<NodeLists>,
}

impl Reconcile for MachineReconciler {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let NodeLists { machines, registry, details, options, .. } = &*self.lists;
        let cluster = (self.clusters)(name);
        let id = cluster.as_ref().map(|it| identity(it));
        let readiness = id.as_ref().and_then(|id| registry.readiness(id));
        let known = id.as_ref().is_some_and(|id| registry.knows(id));
        if let Some(id) = &id {
            details.known(id, |entry| entry.machines_saw = readiness);
        }
        let Some(next) = machines.next_list(name) else { return Ok(Next::Done) };
        if id.as_ref().is_some_and(|id| registry.follows_lease(id)) {
            let why =
                format!("cluster {name} is judged by its Lease alone; its nodes are not listed");
            let why = (UnknownReason::NodesNotListed, &*why);
            machines.unknown(name, why, options.policy.heartbeat, now());
            return Ok(self.next(name));
        }
        match (ParentCluster::of(name, cluster.as_deref(), known, readiness), cluster) {
            (ParentCluster::Healthy, Some(cluster)) => self.list(&cluster, next).await,
            (ParentCluster::Healthy | ParentCluster::Undecided, _) => machines.release(name),
            (ParentCluster::Unhealthy(why), _) => {
                let why = (UnknownReason::ClusterUnhealthy, &*why);
                machines.unknown(name, why, options.policy.heartbeat, now());
            }
            (ParentCluster::Unsupervised(..), _) if !registry.is_ours(name) => {
                machines.release(name);
            }
            (ParentCluster::Unsupervised(cause, why), _) => {
                machines.unknown(name, (cause, &why), ONCE, now());
            }
        }
        Ok(self.next(name))
    }
}

impl MachineReconciler {
    async fn list(&self, cluster: &Object<tke::Cluster>, next: NextList) {
        let cluster = identity(cluster);
        let Some((client, target)) = self.lists.details.target(&cluster) else { return };
        // A list that another task made since the last round is new enough.
        let max_age = match next {
            NextList::Immediate => Duration::ZERO,
            NextList::Confirmation => self.lists.options.machine_confirm() / 2,
            NextList::Regular => self.lists.options.machine_period / 2,
        };
        // Errors are taken in where the list is read.
        let _listed = self.lists.totals(&cluster, &client, target, max_age).await;
    }

    fn next(&self, name: &str) -> Next {
        let NodeLists { machines, options, .. } = &*self.lists;
        let wait = match machines.next_list(name) {
            None => return Next::Done,
            Some(NextList::Confirmation) => options.machine_confirm(),
            Some(NextList::Regular | NextList::Immediate) => options.machine_period,
        };
        Next::After(wait.mul_f64(0.9 + 0.2 * draw()))
    }
}

/// The state of a Cluster as far as its Machines depend on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParentCluster {
    /// The Nodes of the Cluster can be listed.
    Healthy,
    /// The Machines of the Cluster are unknown, with this message.
    Unhealthy(String),
    /// The Machines are unknown because the Cluster does not exist or no replica probes it: the replica
    /// that owns its name writes that once.
    Unsupervised(UnknownReason, String),
    /// The Cluster is not probed by this process, or has no published health yet.
    Undecided,
}

impl ParentCluster {
    /// `cluster` is the object named `name`, `known` whether this process has it, and `readiness`
    /// what it publishes of it; `None` when that is nothing, or nothing yet.
    pub(crate) fn of(
        name: &str,
        cluster: Option<&Object<Cluster>>,
        known: bool,
        readiness: Option<Status>,
    ) -> Self {
        let Some(cluster) = cluster else {
            return Self::Unsupervised(
                UnknownReason::ClusterNotFound,
                format!("there is no cluster {name}"),
            );
        };
        match (supervision(cluster), readiness) {
            (Supervision::LeftAlone, _) => {
                let phase = &cluster.status.phase;
                let why = format!("cluster {name} is not watched, its phase is {phase}");
                Self::Unsupervised(UnknownReason::ClusterUnhealthy, why)
            }
            (Supervision::Locked, _) if known => {
                Self::Unhealthy(format!("cluster {name} is locked"))
            }
            (Supervision::Locked, _) | (_, None) => Self::Undecided,
            (Supervision::Probed, Some(Status::True)) => Self::Healthy,
            (Supervision::Probed, Some(Status::False)) => {
                Self::Unhealthy(format!("cluster {name} is not healthy"))
            }
            (Supervision::Probed, Some(Status::Unknown)) => {
                Self::Unhealthy(format!("the state of cluster {name} is unknown"))
            }
        }
    }
}

/// Reads the cache; nothing when Machines are not looked after.
pub(crate) fn lookup(machines: Option<&Informer<Object<Machine>>>) -> Lookup {
    match machines.cloned() {
        Some(machines) => Box::new(move |key| machines.get(key)),
        None => Box::new(|_| None),
    }
}

/// Until the run stops.
pub(crate) async fn watch_machines(
    context: &Context,
    clusters: &Informer<Object<Cluster>>,
    machines: Option<Informer<Object<Machine>>>,
    queue: &WorkQueue<Arc<str>>,
    reconciler: MachineReconciler,
) -> Result<(), Failure> {
    let Some(machines) = machines else { return Ok(()) };
    let NodeLists { machines: health, options, .. } = &*reconciler.lists;
    let concurrency = options.summary_concurrency;
    let _subscription = subscribe(&machines, Arc::clone(health), queue.clone());
    context
        .run(queue, Arc::new(Reading::new(reconciler, &context.stop)))
        .workers(concurrency)
        .start_filled(&machines)
        .start_filled(clusters)
        .until_stopped()
        .await
}

/// Keeps the index of Machines, then fills the queue.
pub(super) fn subscribe(
    machines: &Informer<Object<Machine>>,
    health: Arc<MachineHealth>,
    queue: WorkQueue<Arc<str>>,
) -> Subscription<Object<Machine>> {
    machines.subscribe(move |delta| {
        match delta {
            Delta::Added(machine) => health.index.insert(machine),
            Delta::Updated { old, new } => {
                if moved(old, new) {
                    health.removed(old);
                }
                health.index.insert(new);
            }
            Delta::Deleted(machine) => health.removed(machine),
            Delta::ListStarts | Delta::ListEnds => {}
        }
        if let Some(cluster) = work(&delta) {
            queue.add(cluster);
        }
    })
}

/// The Cluster whose Machines have to be observed after this change, if any.
fn work(delta: &Delta<'_, Object<Machine>>) -> Option<Arc<str>> {
    let depends_on = |machine: &Object<Machine>| {
        let ip = machine.body.spec.ip.clone();
        (cluster_of(machine), ip, is_live(machine), is_locked(machine))
    };
    match delta {
        Delta::Added(machine) => Some(cluster_of(machine)),
        Delta::Updated { old, new } if depends_on(old) != depends_on(new) => Some(cluster_of(new)),
        _ => None,
    }
}

#[cfg(test)]
mod parent_tests {
    use super::*;
    use crate::tke::testing::cluster;

    #[test]
    fn machines_are_looked_at_while_their_cluster_is_probed_and_healthy() {
        // (phase, locked, known, what is published, what comes of it)
        let rows = [
            ("Running", false, true, Some(Status::True), "healthy"),
            ("Running", false, true, Some(Status::False), "unhealthy"),
            ("Running", false, true, Some(Status::Unknown), "unhealthy"),
            ("Running", false, true, None, "silent"),
            ("Running", false, false, None, "silent"),
            ("Running", true, true, None, "unhealthy"),
            ("Running", true, false, None, "silent"),
            ("Upgrading", false, true, Some(Status::True), "healthy"),
            ("Terminating", false, true, Some(Status::True), "unwatched"),
            ("Idling", false, false, None, "unwatched"),
        ];
        for (phase, locked, known, readiness, expected) in rows {
            let mut cluster = cluster(|object| object["status"]["phase"] = phase.into());
            cluster.status.locked = Some(locked);
            let word = match ParentCluster::of("cls-1", Some(&cluster), known, readiness) {
                ParentCluster::Healthy => "healthy",
                ParentCluster::Unhealthy(_) => "unhealthy",
                ParentCluster::Unsupervised(..) => "unwatched",
                ParentCluster::Undecided => "silent",
            };
            assert_eq!(word, expected, "{phase} {locked} {known} {readiness:?}");
        }
        let gone = ParentCluster::of("cls-1", None, false, None);
        let why = "there is no cluster cls-1".to_owned();
        assert_eq!(gone, ParentCluster::Unsupervised(UnknownReason::ClusterNotFound, why));
    }
}

#[cfg(test)]
mod following_tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tke::testing::machine;

    #[test]
    fn a_machine_is_looked_at_when_it_comes_or_changes_and_not_for_what_we_wrote_about_it() {
        let before = Arc::new(machine(|_| {}));
        assert_eq!(work(&Delta::Added(&before)).as_deref(), Some("cls-1"));
        assert_eq!(work(&Delta::Deleted(&before)), None, "there is nothing left to look at");
        // (what is changed, to what, the cluster that is looked at)
        let rows: [(&str, Value, Option<&str>); 8] = [
            ("/spec/clusterName", json!("cls-2"), Some("cls-2")),
            ("/spec/ip", json!("10.0.0.2"), Some("cls-1")),
            ("/status/locked", json!(true), Some("cls-1")),
            ("/status/phase", json!("Upgrading"), Some("cls-1")),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), Some("cls-1")),
            ("/status/phase", json!("Failed"), None),
            ("/status/conditions", json!([{"type": "HealthCheck", "status": "Unknown"}]), None),
            ("/status/machineInfo", json!({"kubeletVersion": "v1.36.3"}), None),
        ];
        for (field, value, expected) in rows {
            let (parent, name) = field.rsplit_once('/').unwrap();
            let after = Arc::new(machine(|object| {
                object["metadata"]["resourceVersion"] = "8".into();
                object.pointer_mut(parent).unwrap()[name] = value.clone();
            }));
            let delta = Delta::Updated { old: &before, new: &after };
            assert_eq!(work(&delta).as_deref(), expected, "{field} {value}");
        }
    }
}
