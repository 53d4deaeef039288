//! A Cluster that is changed.

use serde_json::{Value, json};

use crate::objects::{baremetal, imported, master};
use crate::row::{Row, all_hold, row};

const FIXED: &str = "field is immutable";

pub(crate) fn rows() -> Vec<Row> {
    [constant(), masters(), ranges()].into_iter().flatten().collect()
}

#[test]
fn a_cluster_stays_what_it_was_made_and_its_masters_change_one_way() {
    all_hold(rows());
}

fn constant() -> Vec<Row> {
    let at = |edits: Value| row("cluster-stays-what-it-was-made", baremetal, edits).was(json!({}));
    let fixed =
        |name: &str, shown: &str| format!("spec.{name}: Invalid: Invalid value: {shown}: {FIXED}");
    let mut rows = vec![
        at(json!({"spec.displayName": "b", "spec.version": "1.23.0"})),
        // What upstream writes where nothing stands.
        at(
            json!({"spec.networkDevice": "eth0", "spec.dnsDomain": "cluster.local", "spec.dockerExtraArgs": {}}),
        ),
        row("cluster-stays-what-it-was-made", imported, json!({"spec.clusterCIDR": "10.0.0.0/8"}))
            .was(json!({})),
        row("cluster-stays-what-it-was-made", imported, json!({"spec.type": "Edge"}))
            .was(json!({}))
            .says(&[&fixed("type", "\"Edge\"")]),
        at(json!({"spec.networkDevice": "eth1"})).says(&[&fixed("networkDevice", "\"eth1\"")]),
        at(json!({"spec.clusterCIDR": "10.245.0.0/16"}))
            .says(&[&fixed("clusterCIDR", "\"10.245.0.0/16\"")]),
        at(json!({"spec.dnsDomain": "example.org"}))
            .says(&[&fixed("dnsDomain", "\"example.org\"")]),
    ];
    for part in ["docker", "kubelet", "apiServer", "controllerManager", "scheduler"] {
        let name = format!("{part}ExtraArgs");
        rows.push(
            at(json!({format!("spec.{name}"): {"token": "planted"}}))
                .says(&[&fixed(&name, "\"object\"")]),
        );
    }
    rows
}

fn masters() -> Vec<Row> {
    let at = |edits: Value| row("masters-change-one-way", baremetal, edits).was(json!({}));
    let ha = json!({"ha": {"thirdParty": {"vip": "10.0.0.9", "vport": 6443}}});
    let says = |why: &str| format!("spec.machines: Invalid: Invalid value: \"array\": {why}");
    let no_ha =
        says("machines are added and removed only with features.ha.tke or features.ha.thirdParty");
    let both = says("machines are added or removed, not both at once");
    vec![
        at(json!({"spec.machines": [master("10.0.0.2"), master("10.0.0.1")]})),
        at(json!({"spec.machines.2": master("10.0.0.3"), "spec.features": ha})),
        at(json!({"spec.machines.1": null, "spec.features": ha})),
        row("masters-change-one-way", imported, json!({"spec.machines": [master("10.0.0.9")]}))
            .was(json!({})),
        at(json!({"spec.machines.2": master("10.0.0.3")})).says(&[&no_ha]),
        at(json!({"spec.machines.1": null})).says(&[&no_ha]),
        at(json!({"spec.machines.1": master("10.0.0.3"), "spec.features": ha})).says(&[&both]),
        at(json!({"spec.machines": [master("10.0.0.2")], "spec.features": ha}))
            .says(&[&says("the first machine stays")]),
    ]
}

/// A change on one side of a rule is judged although the other side is as it was stored.
fn ranges() -> Vec<Row> {
    let ha = json!({"ha": {"thirdParty": {"vip": "10.0.0.9", "vport": 6443}}});
    let dual = json!({"ipv6DualStack": true});
    let (pods, services) = ("10.244.0.0/16,fd00::/64", "10.96.0.0/16,fd01::/112");
    let says = |field: &str, shown: &str, why: &str| {
        format!("spec.{field}: Invalid: Invalid value: \"{shown}\": {why}")
    };
    let single = "must be one CIDR; two need features.ipv6DualStack";
    vec![
        row(
            "masters-are-outside-of-pod-ranges",
            baremetal,
            json!({"spec.machines.2": master("10.244.0.9"), "spec.features": ha}),
        )
        .was(json!({}))
        .says(&[&says(
            "clusterCIDR",
            "10.244.0.0/16",
            "must not contain the address of spec.machines[2]",
        )]),
        row(
            "pod-ranges-are-given",
            baremetal,
            json!({"spec.clusterCIDR": pods, "spec.features": {}}),
        )
        .was(json!({"spec.clusterCIDR": pods, "spec.features": dual}))
        .says(&[&says("clusterCIDR", pods, single)]),
        row(
            "service-ranges-stand-apart",
            imported,
            json!({"spec.serviceCIDR": services, "spec.features": {}}),
        )
        .was(json!({"spec.serviceCIDR": services, "spec.features": dual}))
        .says(&[&says("serviceCIDR", services, single)]),
        row(
            "service-ranges-stand-apart",
            imported,
            json!({"spec.serviceCIDR": "10.96.0.0/16", "spec.clusterCIDR": "10.0.0.0/8"}),
        )
        .was(json!({"spec.serviceCIDR": "10.96.0.0/16", "spec.clusterCIDR": "10.244.0.0/16"}))
        .says(&[&says("serviceCIDR", "10.96.0.0/16", "must not overlap spec.clusterCIDR")]),
    ]
}
