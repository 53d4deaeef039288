//! Lists of Nodes, with the engine and the Machines.

use tokio::time::sleep;

use super::*;
use crate::engine::tests::scene::{Answer, Scene, cluster};
use crate::tke::machines::NextList;
use crate::tke::machines::tests::{Machines, UNHEALTHY};
use crate::tke::summary::list_of;

const S: fn(u64) -> Duration = Duration::from_secs;

/// A list with so many ready Nodes.
fn list(total: usize, ready: usize) -> NodeList {
    let node = |number| {
        let status = if number < ready { "True" } else { "False" };
        let conditions = serde_json::json!([{"type": "Ready", "status": status}]);
        serde_json::json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}})
    };
    list_of((0..total).map(node).collect())
}

/// rule:machines-of-an-unhealthy-cluster-are-unknown, rule:one-prober-per-uid
#[tokio::test(start_paused = true)]
async fn a_list_judges_the_machines_of_its_own_cluster_and_only_while_that_is_ready() {
    let machines = Machines::with(Scene::new(0), &[]);
    let (lists, health) = (machines.lists(), Arc::clone(&machines.health));
    let (own, namesake) = (cluster("cls-1", 1), cluster("cls-1", 2));
    let failed = || Err(Abort::Failed("no answer".into()));
    machines.show("mc-1", |_| {});
    lists.learn(&own, Ok(list(0, 0))).unwrap();
    assert_eq!(health.next_list("cls-1"), Some(NextList::Immediate), "nothing is published yet");
    machines.engine.add("cls-1", 1);
    sleep(S(15)).await;
    lists.learn(&namesake, Ok(list(0, 0))).unwrap();
    lists.learn(&namesake, failed()).unwrap_err();
    assert_eq!(health.next_list("cls-1"), Some(NextList::Immediate), "that was of another one");
    lists.learn(&own, Ok(list(0, 0))).unwrap();
    assert_eq!(health.next_list("cls-1"), Some(NextList::Confirmation), "the machine has no Node");

    machines.engine.members.set("cls-1", Answer::Failing);
    sleep(S(60)).await;

    health.unknown("cls-1", UNHEALTHY, S(300), now());
    lists.learn(&own, Ok(list(0, 0))).unwrap();
    lists.learn(&own, failed()).unwrap_err();
    assert_eq!(health.next_list("cls-1"), Some(NextList::Immediate), "the state is unknown");
}

#[tokio::test(start_paused = true)]
async fn required_nodes_that_go_or_come_bring_a_probe_within_a_second() {
    for (required, expected) in [("true", 2), ("false", 0)] {
        let machines = Machines::with(Scene::new(0), &[("ready-requires-nodes", required)]);
        let (lists, own, engine) = (machines.lists(), cluster("cls-1", 1), &machines.engine);
        machines.states.with(&own, |_| {});
        engine.add("cls-1", 1);
        sleep(S(15)).await;
        let probes = || engine.members.probes("cls-1");
        // The next one is due in nine seconds at least.
        let begun = probes();
        while probes() == begun {
            sleep(Duration::from_millis(10)).await;
        }
        let begun = probes();
        for ready in [1, 1, 0, 0, 1, 1] {
            lists.learn(&own, Ok(list(1, ready))).unwrap();
            sleep(S(1)).await;
        }
        assert_eq!(probes() - begun, expected, "{required}");
    }
}
