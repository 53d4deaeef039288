//! The sums of the two lists of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::tke::summary::nodes::Roster;
use crate::tke::summary::testing::{Paged, node, pod};
use crate::tke::summary::{Gathered, list_nodes, list_pods};

fn gathered(on: Vec<Value>, running: Vec<Value>) -> Gathered {
    let lists = BTreeMap::from([("/api/v1/nodes", vec![on]), ("/api/v1/pods", vec![running])]);
    let mut member = Paged::with_expiries(lists, BTreeSet::new());
    let gathering = async {
        let nodes = list_nodes(&mut member, 500, &Roster::default()).await.unwrap().totals;
        Gathered { nodes, pods: list_pods(&mut member, 500).await.unwrap() }
    };
    let gathered = gathering.now_or_never().expect("the server answers at once");
    let selector = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
    let asked =
        ["/api/v1/nodes?limit=500".to_owned(), format!("/api/v1/pods?limit=500&{selector}")];
    assert_eq!(member.asked(), asked);
    gathered
}

#[test]
fn a_summary_is_rounded_once_and_tells_bound_from_waiting_pods() {
    let mut ended = pod(Some("n"), "8", "8Gi");
    ended["status"]["phase"] = json!("Succeeded");
    let pods = vec![
        pod(Some("n"), "333333333n", "0.5"),
        pod(Some("n"), "333333333n", "0.5"),
        pod(Some("n"), "333333334n", "1Ki"),
        pod(None, "1500m", "1Mi"),
        pod(Some(""), "0.1", "1"),
        ended,
    ];
    let nodes = vec![
        node("a", "4", true, false),
        node("b", "3500m", true, true),
        node("c", "1500m", false, false),
    ];
    let observed = "2026-01-02T03:04:05Z".parse().unwrap();
    let summary = gathered(nodes, pods).summary(observed);
    let expected = json!({
        "capacity": {"cpu": "9", "memory": "3221225472"},
        "allocatable": {"cpu": "9", "memory": "3145728000"},
        "allocated": {"cpu": "1", "memory": "1025"},
        "allocating": {"cpu": "1600m", "memory": "1048577"},
        "nodes": {"total": 3, "ready": 2, "schedulable": 1},
        // 4, 3 and 1, where the sum is 9.
        "cores": 8,
        "pods": 5,
        "observedTime": "2026-01-02T03:04:05Z",
    });
    assert_eq!(serde_json::to_value(summary).unwrap(), expected);
}

#[test]
fn an_empty_cluster_has_and_uses_nothing() {
    let summary = gathered(vec![], vec![]).summary(Timestamp::UNIX_EPOCH);
    let nothing = json!({"cpu": "0", "memory": "0"});
    let told = serde_json::to_value(summary).unwrap();
    assert_eq!(
        (&told["capacity"], &told["allocated"], &told["pods"]),
        (&nothing, &nothing, &json!(0))
    );
}

#[test]
fn a_node_is_ready_only_if_it_says_so_itself() {
    let with = |conditions: Value| {
        let mut node = node("a", "1", true, false);
        node["status"]["conditions"] = conditions;
        gathered(vec![node], vec![]).nodes.counts.ready
    };
    assert_eq!(with(json!([{"type": "Ready", "status": "True"}])), 1);
    for conditions in [
        json!(null),
        json!([]),
        json!([{"type": "Ready", "status": "Unknown"}]),
        json!([{"type": "Ready", "status": "False"}]),
        json!([{"type": "DiskReady", "status": "True"}]),
    ] {
        assert_eq!(with(conditions.clone()), 0, "{conditions}");
    }
}
