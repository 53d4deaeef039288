//! [`MachineHealth`] with the engine's writer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_server_double::fields::{Crd, End, Field, World, play, set};
use health::EvidenceSource;
use informer::Subscription;
use objects::Object;
use parking_lot::Mutex;
use probe::{ConnectionLimits, Meters, Names, Prober};
use serde_json::{Value, json};
use tokio::time::sleep;
use workqueue::{Backoff, Jitter, Next, QueueMetrics, Reconcile, Retry, WorkQueue, run_workers};

use super::{MachineHealth, NextList, UnknownReason};
use crate::api::tke::{Cluster, MACHINES, Machine};
use crate::engine::now;
use crate::engine::tests::fields::{
    Log, add_fields_of_others, cache, leaves_others, one_worker, runtime, without_details,
};
use crate::engine::tests::scene::Scene;
use crate::options::TkeOptions;
use crate::tke::cluster_details::DetailStore;
use crate::tke::machine_reconciler::{MachineReconciler, subscribe};
use crate::tke::node_lists::NodeLists;
use crate::tke::summary::{Roster, list_for, list_of};
use crate::tke::testing::{cluster, machine, options};

pub(crate) const UNHEALTHY: (UnknownReason, &str) =
    (UnknownReason::ClusterUnhealthy, "cluster cls-1 is not healthy");
const HEARTBEAT: Duration = Duration::from_secs(300);

/// Machines as the cache shows them.
type Cache = Arc<Mutex<HashMap<String, Arc<Object<Machine>>>>>;

pub(crate) struct Machines {
    pub(crate) engine: Scene,
    cache: Cache,
    pub(crate) health: Arc<MachineHealth>,
    options: Arc<TkeOptions>,
    pub(crate) details: Arc<DetailStore>,
}

impl Machines {
    /// With the flags at their defaults: three failures in a row make a Machine fail.
    fn new() -> Self {
        Self::with(Scene::new(0), &[])
    }

    pub(crate) fn with(engine: Scene, flags: &[(&str, &str)]) -> Self {
        let (cache, options) = (Cache::default(), Arc::new(options(flags)));
        let shown = Arc::clone(&cache);
        let lookup = Box::new(move |key: &str| shown.lock().get(key).cloned());
        let recorder = engine.clusters.recorder.clone();
        let health = MachineHealth::new(
            (lookup, Arc::new(|| true)),
            engine.registry.clone(),
            recorder,
            Arc::clone(&options),
        );
        Self { engine, cache, health: Arc::new(health), options, details: Arc::default() }
    }

    /// Lists of Nodes of Clusters that cannot be reached.
    pub(crate) fn lists(&self) -> NodeLists {
        let meters = Meters::new(&prometheus::Registry::new()).unwrap();
        let limits = ConnectionLimits { max_age: HEARTBEAT, idle_max: HEARTBEAT };
        NodeLists {
            prober: Arc::new(Prober::new(meters, limits, Names::default())),
            details: Arc::clone(&self.details),
            registry: self.engine.registry.clone(),
            options: Arc::clone(&self.options),
            machines: Arc::clone(&self.health),
        }
    }

    /// Looks at the Machines of `cls-1`, which is gone.
    async fn look(&self) {
        self.look_at(None).await;
    }

    /// Looks at the Machines of this `cls-1`.
    async fn look_at(&self, cluster: Option<Object<Cluster>>) {
        let (lists, cluster) = (Arc::new(self.lists()), cluster.map(Arc::new));
        let reconciler = MachineReconciler { clusters: Box::new(move |_| cluster.clone()), lists };
        reconciler.reconcile(&"cls-1".into()).await.unwrap();
    }

    pub(crate) fn show(&self, name: &str, edit: impl FnOnce(&mut Value)) -> Arc<Object<Machine>> {
        let object = Arc::new(machine(|object| {
            object["metadata"]["name"] = name.into();
            object["metadata"]["uid"] = name.into();
            edit(object);
        }));
        self.cache.lock().insert(name.to_owned(), Arc::clone(&object));
        self.health.index.insert(&object);
        object
    }

    /// The object as the API server has it after what was applied.
    fn reload(&self, name: &str) {
        let status = self.engine.api.machine(name).unwrap();
        self.show(name, |object| object["status"] = status);
    }

    fn observe(&self, nodes: &[(&str, &str)]) {
        self.health.observe("cls-1", &roster(nodes), now());
    }

    /// Phase, status and reason of the condition that were written last; empty when nothing was.
    async fn told(&self, name: &str) -> String {
        sleep(Duration::from_secs(1)).await;
        let Some(status) = self.engine.api.machine(name) else { return String::new() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let condition = &status["conditions"][0];
        words(&text(&status["phase"]), &text(&condition["status"]), &text(&condition["reason"]))
    }
}

fn roster(nodes: &[(&str, &str)]) -> Roster {
    let node = |(name, ready): &(&str, &str)| {
        json!({
            "metadata": {"name": name},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "nodeInfo": {"kubeletVersion": "v1.36.3"},
            },
        })
    };
    list_of(nodes.iter().map(node).collect()).roster
}

fn words(phase: &str, status: &str, reason: &str) -> String {
    format!("{phase} {status} {reason}")
}

#[tokio::test(start_paused = true)]
async fn a_machine_fails_at_the_third_list_without_it_and_runs_again_at_the_first_with_it() {
    let machines = Machines::new();
    machines.show("mc-1", |_| {});
    let well = [("10.0.0.1", "True"), ("other", "True")];
    machines.observe(&well);
    assert_eq!(machines.told("mc-1").await, words("Running", "True", ""));
    let info = &machines.engine.api.machine("mc-1").unwrap()["machineInfo"];
    assert_eq!(info["kubeletVersion"], "v1.36.3");
    machines.reload("mc-1");
    for _ in 0..2 {
        // The second of two that come together is no second failure.
        for _ in 0..2 {
            machines.observe(&[("other", "True")]);
            assert_eq!(machines.health.next_list("cls-1"), Some(NextList::Confirmation));
            assert_eq!(machines.told("mc-1").await, words("Running", "True", ""));
        }
        sleep(machines.options.machine_confirm()).await;
    }
    machines.observe(&[("other", "True")]);
    assert_eq!(machines.told("mc-1").await, words("Failed", "False", "HealthCheckFail"));
    machines.reload("mc-1");
    machines.observe(&well);
    assert_eq!(machines.told("mc-1").await, words("Running", "True", ""));
    assert_eq!(machines.engine.api.events(), ["MachineNotReady", "MachineReady"]);
}

/// rule:machines-of-an-unhealthy-cluster-are-unknown
#[tokio::test(start_paused = true)]
async fn the_machines_of_an_unhealthy_cluster_keep_their_phase_and_are_told_of_by_nobody() {
    let machines = Machines::new();
    machines.show("mc-1", |_| {});
    machines.show("mc-2", |object| {
        object["spec"]["ip"] = "10.0.0.2".into();
        object["status"]["phase"] = "Failed".into();
    });
    machines.health.unknown("cls-1", UNHEALTHY, HEARTBEAT, now());
    assert_eq!(machines.told("mc-1").await, words("Running", "Unknown", "ClusterUnhealthy"));
    assert_eq!(machines.told("mc-2").await, words("Failed", "Unknown", "ClusterUnhealthy"));
    assert!(machines.engine.api.events().is_empty());
    machines.reload("mc-1");
    assert_eq!(machines.health.next_list("cls-1"), Some(NextList::Immediate));
    machines.observe(&[("10.0.0.1", "False")]);
    assert_eq!(machines.told("mc-1").await, words("Failed", "False", "NodeNotReady"));
}

#[tokio::test(start_paused = true)]
async fn refused_writes_are_tried_again_and_the_newest_state_is_written() {
    let machines = Machines::new();
    machines.show("mc-1", |_| {});
    machines.engine.api.refuse(true);
    machines.health.unknown("cls-1", UNHEALTHY, HEARTBEAT, now());
    assert_eq!(machines.told("mc-1").await, "");
    machines.observe(&[("10.0.0.1", "True")]);
    machines.engine.api.refuse(false);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(machines.told("mc-1").await, words("Running", "True", ""));
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_machine_is_written_at_heartbeats_only_and_what_others_wrote_over_it_at_once()
{
    let machines = Machines::new();
    machines.show("mc-1", |_| {});
    machines.observe(&[("10.0.0.1", "True")]);
    sleep(Duration::from_secs(1)).await;
    machines.reload("mc-1");
    let writes = || machines.engine.api.writes();
    let before = writes();
    for _ in 0..4 {
        machines.observe(&[("10.0.0.1", "True")]);
        sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(writes(), before);
    sleep(Duration::from_secs(60)).await;
    machines.observe(&[("10.0.0.1", "True")]);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(writes(), before + 1);
    machines.show("mc-1", |object| object["status"] = json!({"phase": "Failed"}));
    machines.observe(&[("10.0.0.1", "True")]);
    assert_eq!(machines.told("mc-1").await, words("Running", "True", ""));
    assert_eq!(writes(), before + 2);
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn nothing_is_written_of_a_machine_that_is_gone_or_is_another_by_now() {
    let machines = Machines::new();
    let gone = machines.show("mc-1", |_| {});
    machines.engine.api.refuse(true);
    machines.observe(&[("10.0.0.1", "False")]);
    sleep(Duration::from_secs(1)).await;
    machines.health.removed(&gone);
    assert_eq!(machines.health.next_list("cls-1"), None);
    machines.engine.api.refuse(false);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(machines.told("mc-1").await, "");
    // One of the same name starts with what its own object says.
    machines.show("mc-1", |object| object["metadata"]["uid"] = "another".into());
    machines.observe(&[("10.0.0.1", "False")]);
    assert_eq!(machines.told("mc-1").await, words("Running", "True", ""));
    assert_eq!(machines.health.next_list("cls-1"), Some(NextList::Confirmation));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_set_up_or_locked_is_not_judged() {
    let machines = Machines::new();
    machines.show("mc-1", |object| object["status"]["phase"] = "Initializing".into());
    machines.observe(&[]);
    assert_eq!(machines.told("mc-1").await, "");
    assert_eq!(machines.health.next_list("cls-1"), None);
    machines.show("mc-1", |object| object["status"]["locked"] = true.into());
    machines.observe(&[]);
    assert_eq!(machines.told("mc-1").await, words("Running", "Unknown", "MachineLocked"));
    assert_eq!(machines.health.next_list("cls-1"), Some(NextList::Regular));
}

#[tokio::test(start_paused = true)]
async fn of_several_replicas_only_the_one_that_has_the_name_tells_that_a_cluster_is_gone() {
    for (engine, told) in [
        (Scene::new(0), words("Running", "Unknown", "ClusterNotFound")),
        (Scene::of_others(), String::new()),
    ] {
        let machines = Machines::with(engine, &[]);
        let uid = Arc::clone(&machines.show("mc-1", |_| {}).metadata.uid);
        machines.look().await;
        assert_eq!(machines.told("mc-1").await, told);
        assert!(!machines.engine.registry.writes(&uid), "nothing waits to be written");
    }
}

#[tokio::test(start_paused = true)]
async fn the_word_of_a_cluster_does_not_wait_for_a_thousand_machines() {
    let machines = Machines::new();
    machines.engine.add("ns/a", 1);
    sleep(Duration::from_secs(15)).await;
    for number in 0..1000 {
        machines.show(&format!("mc-{number}"), |_| {});
    }
    // 64 per second.
    machines.engine.api.delay_writes(Duration::from_secs(1));
    machines.observe(&[("10.0.0.1", "True")]);
    sleep(Duration::from_secs(3)).await;
    machines.engine.add_with("ns/a", 1, |target| target.paused = true);
    sleep(Duration::from_millis(2100)).await;
    let api = &machines.engine.api;
    assert_eq!(api.written("ns/a"), Some("paused".to_owned()));
    let written = (0..1000).filter(|number| api.machine(&format!("mc-{number}")).is_some()).count();
    assert!(written < 500, "{written} were written before");
}

/// rule:machines-of-an-unhealthy-cluster-are-unknown
#[tokio::test(start_paused = true)]
async fn machines_of_a_cluster_that_is_judged_by_its_lease_alone_are_unknown() {
    let machines = Machines::new();
    machines.show("mc-1", |_| {});
    machines.observe(&[("10.0.0.1", "True")]);
    machines.engine.add_with("cls-1", 1, |target| target.policy.evidence = EvidenceSource::Beats);
    let object = cluster(|object| object["metadata"]["uid"] = "cls-1-1".into());
    machines.look_at(Some(object)).await;
    assert!(machines.told("mc-1").await.ends_with("Unknown NodesNotListed"));
}

/// One Machine, from the watch of its object to its status.
struct OneMachine {
    machines: Machines,
    watch: Log,
    applied: Value,
    uid: String,
    version: u64,
    _subscription: Subscription<Object<Machine>>,
}

/// Looks at the Machines of a Cluster when a change of one asks for it, and to confirm what it saw.
struct Look(Arc<MachineHealth>, Duration);

impl Reconcile for Look {
    type Key = Arc<str>;

    async fn reconcile(&self, cluster: &Arc<str>) -> Result<Next, Retry> {
        let node = |(address, ready): (&str, &str)| {
            json!({"metadata": {"name": address}, "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "nodeInfo": {"machineID": format!("{address} of {cluster}")},
            }})
        };
        let nodes = [("10.0.0.1", "True"), ("10.0.0.2", "True"), ("10.0.0.3", "False")].map(node);
        if **cluster == *"cls-9" {
            let why = (UnknownReason::ClusterNotFound, "there is no cluster cls-9");
            self.0.unknown(cluster, why, HEARTBEAT, now());
        } else {
            let list = list_for(&self.0.roster(cluster), nodes.into());
            self.0.observe(cluster, &list.roster, now());
        }
        let is_confirmed = self.0.next_list(cluster) != Some(NextList::Confirmation);
        Ok(if is_confirmed { Next::Done } else { Next::After(self.1) })
    }
}

impl OneMachine {
    async fn new() -> Self {
        let (machines, watch) = (Machines::new(), Log::new(Vec::new()));
        let objects = cache(&MACHINES, &watch).await;
        let backoff = Backoff::doubling(HEARTBEAT, HEARTBEAT, Jitter::Above(0.5));
        let metrics = QueueMetrics::new(&prometheus::Registry::new()).unwrap();
        let (health, queue) =
            (Arc::clone(&machines.health), WorkQueue::new("machines", backoff, &metrics));
        let look = Look(Arc::clone(&health), machines.options.machine_confirm());
        tokio::spawn(run_workers(queue.clone(), Arc::new(look), one_worker()));
        let subscription = subscribe(&objects, health, queue);
        let (applied, uid) = (json!({"phase": "Running"}), "m".to_owned());
        Self { machines, watch, applied, uid, version: 10, _subscription: subscription }
    }

    fn tell(&mut self, object: &Value, kind: &str) {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"] =
            json!({"name": "mc-1", "uid": self.uid, "resourceVersion": self.version.to_string()});
        object["status"] = self.applied.clone();
        add_fields_of_others(&mut object);
        let shown = Arc::new(Object::read(object.clone()).unwrap());
        self.machines.cache.lock().insert("mc-1".to_owned(), shown);
        self.watch.send_modify(|log| log.push(json!({"type": kind, "object": object})));
    }
}

impl World for OneMachine {
    async fn settle(&mut self, objects: &Value, is_replaced: bool) -> End {
        let object = &objects["object"];
        if is_replaced {
            let old = self.watch.borrow().last().unwrap()["object"].clone();
            self.tell(&old, "DELETED");
            sleep(Duration::from_secs(5)).await;
            self.uid.push_str("-next");
            self.applied = json!({"phase": "Running"});
        }
        let kind = if is_replaced || self.version == 10 { "ADDED" } else { "MODIFIED" };
        self.tell(object, kind);
        for _ in 0..3 {
            sleep(HEARTBEAT).await;
            let Some(sent) = self.machines.engine.api.sent(&MACHINES, "mc-1") else { continue };
            let stored = self.watch.borrow().last().unwrap()["object"].clone();
            leaves_others(&sent, &stored, sent.get("kind").is_some());
            let applied = sent["status"].clone();
            if std::mem::replace(&mut self.applied, applied.clone()) != applied {
                self.tell(object, "MODIFIED");
            }
        }
        let written = self.machines.engine.api.writes();
        sleep(HEARTBEAT).await;
        assert_eq!(self.machines.engine.api.writes(), written, "written again at rest");
        let is_of = |name: &&str| !self.machines.health.index.of(name).is_empty();
        let effects = ["cls-1", "cls-2", "cls-3"].into_iter().filter(is_of);
        let effects = effects.map(|name| format!("looked for among the Nodes of {name}")).collect();
        let mut status = self.applied.clone();
        without_details(&mut status);
        End { effects, reports: vec![status.to_string()] }
    }
}

#[test]
fn a_field_of_a_machine_that_is_changed_or_reverted_leaves_no_trace() {
    let field = |path, one: &str, other: &str| Field::new(path, one, other);
    let fields = [
        field("object.spec.clusterName", "cls-2", "cls-3").refuses("cls-9"),
        // As the schema wants it.
        field("object.spec.clusterName", "cls-2", "cls-3").refuses("cls-9").replaced(),
        field("object.spec.ip", "10.0.0.2", "10.0.0.3").refuses("no address"),
    ];
    let installer = "the installer of TKEStack reads it, no list of Nodes needs it";
    let exceptions = ["*", "finalizers", "tenantID", "type", "port", "username", "password"]
        .into_iter()
        .chain(["privateKey", "passPhrase", "labels", "taints"]);
    let exceptions: Vec<_> = exceptions.map(|name| format!("spec.{name}")).collect();
    let exceptions: Vec<_> = exceptions.iter().map(|it| (&**it, installer)).collect();
    let crd = Crd::read("config/crd/platform.tkestack.io_machines.yaml");
    let others = crd.is_complete(&["spec"], "object", &fields, &exceptions);
    let objects = json!({"object": {
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine",
        "spec": {"clusterName": "cls-1", "ip": "10.0.0.1"},
    }});
    for field in &fields {
        let deviations = runtime().block_on(play(OneMachine::new, &objects, field));
        assert!(deviations.is_empty(), "{deviations:#?}");
    }
    let mut changed = objects.clone();
    for (path, value) in others {
        set(&mut changed, &path, &value);
    }
    runtime().block_on(async {
        let mut machine = OneMachine::new().await;
        let start = machine.settle(&objects, false).await;
        assert_eq!(machine.settle(&changed, false).await, start);
    });
}
