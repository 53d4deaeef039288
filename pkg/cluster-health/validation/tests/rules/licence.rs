//! Limits of the licence.

use serde_json::{Value, json};

use crate::objects::{baremetal, imported, machine, master};
use crate::row::{Row, all_hold, row};

/// A Cluster with so many nodes and cores by its summary.
fn published(name: &str, nodes: u64, cpu: &str) -> Value {
    let mut cluster = imported();
    cluster["metadata"]["name"] = json!(name);
    cluster["status"] = json!({"resource": {"nodes": {"total": nodes}, "capacity": {"cpu": cpu}}});
    cluster
}

/// A Cluster with half cores.
fn halves() -> Value {
    let mut cluster = published("halves", 2, "9");
    cluster["status"]["resource"]["cores"] = json!(8);
    cluster
}

/// A Cluster without a summary: two masters and as many Machines as are given.
fn silent() -> Value {
    let mut cluster = baremetal();
    cluster["metadata"]["name"] = json!("silent");
    cluster
}

pub(crate) fn rows() -> Vec<Row> {
    let licence =
        |licence: Value, clusters: Value| json!({"licence": licence, "clusters": clusters});
    let limits = |edits: Value| row("licence-limits-what-is-new", baremetal, edits);
    let sizes = |edits: Value| row("sizes-are-those-published", baremetal, edits);
    let of_machine = || row("licence-limits-what-is-new", machine, json!({}));
    let clusters = json!([published("global", 1, "4"), published("a", 3, "7500m")]);
    let says = |text: &str| format!("spec.name: Forbidden: Forbidden: the licence is for {text}");
    let mut worker = machine();
    worker["spec"]["clusterName"] = json!("silent");
    vec![
        limits(json!({})).given(licence(json!({}), clusters.clone())),
        limits(json!({})).given(licence(json!({"maxClusters": 2}), clusters.clone())),
        limits(json!({"metadata.name": "global"})).given(licence(json!({"maxClusters": 1}), json!([published("a", 1, "1")]))),
        limits(json!({})).given(licence(json!({"maxClusters": 1}), clusters.clone())).says(&[&says("1 clusters, and there are 1")]),
        // Without limits for what there is already.
        limits(json!({"spec.displayName": "b"})).was(json!({})).given(licence(json!({"maxClusters": 1, "maxNodes": 1, "maxCPUs": 1}), clusters.clone())),
        limits(json!({})).given(licence(json!({"maxNodes": 6}), clusters.clone())),
        limits(json!({})).given(licence(json!({"maxNodes": 5}), clusters.clone())).says(&[&says("5 nodes; there are 4, and 2 are new")]),
        limits(json!({"spec.machines.2": master("10.0.0.3"), "spec.features": {"ha": {"tke": {"vip": "10.0.0.9"}}}})).was(json!({})).given(licence(json!({"maxNodes": 4}), clusters.clone())).says(&[&says("4 nodes; there are 4, and 1 are new")]),
        limits(json!({})).given(licence(json!({"maxCPUs": 12}), clusters.clone())),
        limits(json!({})).given(licence(json!({"maxCPUs": 11}), clusters.clone())).says(&[&says("11 CPUs, and there are 11")]),
        of_machine().given(licence(json!({"maxNodes": 2}), json!([published("cls-1", 1, "1")]))),
        of_machine().given(licence(json!({"maxNodes": 1}), json!([published("cls-1", 1, "1")]))).says(&[&says("1 nodes; there are 1, and 1 are new")]),
        of_machine().given(licence(json!({"maxCPUs": 1}), json!([published("cls-1", 1, "1")]))).says(&[&says("1 CPUs, and there are 1")]),
        sizes(json!({})).given(json!({"licence": {"maxNodes": 5}, "clusters": [silent()], "machines": [worker]})),
        sizes(json!({})).given(json!({"licence": {"maxNodes": 4}, "clusters": [silent()], "machines": [worker]})).says(&[&says("4 nodes; there are 3, and 2 are new")]),
        sizes(json!({})).given(json!({"licence": {"maxCPUs": 1}, "clusters": [silent()]})),
        sizes(json!({})).given(json!({"licence": {"maxCPUs": 8}, "clusters": [published("a", 1, "8999m")]})).says(&[&says("8 CPUs, and there are 8")]),
        // Two Nodes of 4500m have eight whole cores.
        sizes(json!({})).given(json!({"licence": {"maxCPUs": 9}, "clusters": [halves()]})),
        sizes(json!({})).given(json!({"licence": {"maxCPUs": 8}, "clusters": [halves()]})).says(&[&says("8 CPUs, and there are 8")]),
    ]
}

#[test]
fn a_licence_limits_what_is_new_by_what_was_published() {
    all_hold(rows());
}
