//! Machines.

use serde_json::{Value, json};

use crate::objects::{baremetal, imported, machine};
use crate::row::{Row, all_hold, row};

pub(crate) fn rows() -> Vec<Row> {
    [fields(), clusters(), room(), addresses()].into_iter().flatten().collect()
}

#[test]
fn a_machine_is_judged_by_itself_and_by_its_cluster() {
    all_hold(rows());
}

/// A Machine that fits the Cluster of the other rows.
fn fitting(rule: &'static str, edits: Value) -> Row {
    row(rule, machine, edits).given(json!({"clusters": [baremetal()]}))
}

fn fields() -> Vec<Row> {
    let known = |edits: Value| fitting("machine-types-are-known", edits);
    let stays = |edits: Value| fitting("machines-stay-what-they-were-made", edits).was(json!({}));
    let login = |edits: Value| fitting("machines-can-be-logged-into", edits);
    let name = "spec.clusterName: Required: Required value: the Cluster that the machine is of";
    vec![
        known(json!({"spec.type": "Edge"})),
        known(json!({"spec.type": "Imported"})).says(&["spec.type: NotSupported: Unsupported value: \"Imported\": supported values: \"Baremetal\", \"Edge\""]),
        known(json!({"spec.type": null})).says(&["spec.type: Required: Required value: what the machine is, such as Baremetal"]),
        known(json!({"spec.clusterName": ""})).says(&[name]),
        stays(json!({"spec.username": "ops"})),
        stays(json!({"spec.type": "Edge"})).says(&["spec.type: Invalid: Invalid value: \"Edge\": field is immutable"]),
        stays(json!({"spec.clusterName": "cls-2"})).says(&["spec.clusterName: Invalid: Invalid value: \"cls-2\": field is immutable"]),
        login(json!({})),
        login(json!({"spec.ip": "host"})).says(&["spec.ip: Invalid: Invalid value: \"host\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        login(json!({"spec.port": null})).says(&["spec.port: Required: Required value: the port of SSH, such as 22"]),
        login(json!({"spec.port": 0})).says(&["spec.port: Invalid: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        login(json!({"spec.username": null})).says(&["spec.username: Required: Required value: the user of SSH"]),
        login(json!({"spec.privateKey": null})).says(&["spec.password: Required: Required value: password or privateKey, in base64"]),
    ]
}

fn clusters() -> Vec<Row> {
    let at = |clusters: Value| {
        row("machines-have-a-cluster", machine, json!({})).given(json!({"clusters": clusters}))
    };
    let mut odd = baremetal();
    odd["spec"]["clusterCIDR"] = json!("10.244.0.0/99");
    vec![
        at(json!([baremetal()])),
        at(json!([imported()])),
        at(json!([])).says(&["spec.clusterName: Invalid: Invalid value: \"cls-1\": there is no Cluster of this name"]),
        at(json!([odd])).says(&["spec.clusterName: Invalid: Invalid value: \"cls-1\": spec.clusterCIDR of this Cluster is no CIDR"]),
        row("machines-have-a-cluster", machine, json!({"spec.username": "ops"})).was(json!({})),
    ]
}

/// Machines of the Cluster with addresses of their own.
fn machines(count: usize) -> Vec<Value> {
    let one = |index: usize| {
        let mut other = machine();
        other["metadata"]["name"] = json!(format!("mc-other-{index}"));
        other["spec"]["ip"] = json!(format!("10.9.{}.{}", index / 256, index % 256));
        other
    };
    (0..count).map(one).collect()
}

fn room() -> Vec<Row> {
    // (clusterCIDR, status, maxNodePodNum, machines there)
    let at = |cidr: &str, status: Value, pods: Value, there: usize| {
        let mut cluster = baremetal();
        cluster["spec"]["clusterCIDR"] = json!(cidr);
        cluster["spec"]["properties"] = json!({"maxNodePodNum": pods});
        cluster["status"] = status;
        let given = json!({"clusters": [cluster], "machines": machines(there)});
        row("pod-ranges-limit-machines", machine, json!({})).given(given)
    };
    let full = |room: u64, there: u64| {
        format!(
            "spec: Forbidden: Forbidden: the range of Pods has room for {room} machines, and there are {there}"
        )
    };
    let early = |now: u64, room: u64| {
        format!(
            "warning: spec: this is machine {now} of {room} that the range of Pods has room for"
        )
    };
    let none = || json!(null);
    vec![
        at("10.244.0.0/16", json!({"nodeCIDRMaskSize": 24}), none(), 229),
        at("10.244.0.0/16", json!({"nodeCIDRMaskSize": 24}), none(), 230).says(&[&early(231, 256)]),
        at("10.244.0.0/16", json!({"nodeCIDRMaskSize": 24}), none(), 255).says(&[&early(256, 256)]),
        at("10.244.0.0/16", json!({"nodeCIDRMaskSize": 24}), none(), 256).says(&[&full(256, 256)]),
        at("10.244.0.0/24", json!({"nodeCIDRMaskSizeIPv4": 26, "nodeCIDRMaskSize": 24}), none(), 2),
        at("10.244.0.0/24", json!({"nodeCIDRMaskSizeIPv4": 26, "nodeCIDRMaskSize": 24}), none(), 4)
            .says(&[&full(4, 4)]),
        at("10.244.0.0/28", json!({"nodeCIDRMaskSize": 24}), none(), 0).says(&[&full(0, 0)]),
        // The mask follows from the number of Pods: 64 is /26, 256 is /24.
        at("10.244.0.0/24", json!({"nodeCIDRMaskSize": 0}), json!(64), 2),
        at("10.244.0.0/24", json!({"nodeCIDRMaskSize": 0}), json!(64), 4).says(&[&full(4, 4)]),
        at("10.244.0.0/24", json!({}), json!(33), 4).says(&[&full(4, 4)]),
        at("10.244.0.0/22", json!({}), none(), 4).says(&[&full(4, 4)]),
        at("fd00::/120,10.244.0.0/28", json!({}), none(), 0).says(&[&full(0, 0)]),
        at("fd00::/120", json!({"nodeCIDRMaskSizeIPv6": 120}), none(), 9),
    ]
}

fn addresses() -> Vec<Row> {
    let at = |edits: Value, others: &[Value]| {
        let given = json!({"clusters": [baremetal()], "machines": others});
        row("machine-addresses-are-free", machine, edits).given(given)
    };
    let mut elsewhere = machines(1).remove(0);
    elsewhere["spec"]["clusterName"] = json!("cls-2");
    let taken = |ip: &str| format!("spec.ip: Duplicate: Duplicate value: \"{ip}\"");
    vec![
        at(json!({}), &machines(3)),
        at(json!({"spec.ip": "10.9.0.0"}), &[elsewhere]),
        // Itself, as it is stored.
        at(json!({"spec.ip": "10.9.0.9"}), &[machine()]).was(json!({})),
        at(json!({"spec.ip": "10.9.0.1"}), &machines(3)).says(&[&taken("10.9.0.1")]),
        at(json!({"spec.ip": "10.0.0.2"}), &[]).says(&[&taken("10.0.0.2")]),
        at(json!({"spec.ip": "10.9.0.1"}), &machines(3)).was(json!({})).says(&[&taken("10.9.0.1")]),
        at(json!({"spec.ip": "10.9.0.1", "spec.username": "ops"}), &machines(3))
            .was(json!({"spec.ip": "10.9.0.1"})),
    ]
}
