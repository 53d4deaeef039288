//! [`MachineHealth`] with the engine's writer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use health::EvidenceSource;
use objects::Object;
use parking_lot::Mutex;
use probe::{ConnectionLimits, Meters, Names, Prober};
use serde_json::{Value, json};
use tokio::time::sleep;
use workqueue::Reconcile as _;

use super::{MachineHealth, NextList, UnknownReason};
use crate::api::tke::{Cluster, Machine};
use crate::engine::now;
use crate::engine::tests::scene::Scene;
use crate::options::TkeOptions;
use crate::tke::cluster_details::DetailStore;
use crate::tke::machine_reconciler::MachineReconciler;
use crate::tke::node_lists::NodeLists;
use crate::tke::summary::{Roster, list_of};
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
