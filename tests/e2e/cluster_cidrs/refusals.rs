//! ClusterCIDRs that cannot be: those that the API server refuses, and those that the product does.

use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::pool::Lent;
use tests::programs::workspace;
use tests::stored_before::without_rules;

use crate::scene::{KIND, Scene, cluster_cidr, condition, everybody, hub, is_ready, labelled};

/// A spec for Nodes that meet this requirement.
fn selecting(of: &str, requirement: &Value) -> Value {
    let mut spec = everybody(&["10.1.0.0/16"], 8);
    spec["nodeSelector"] = json!({"nodeSelectorTerms": [{ of: [requirement] }]});
    spec
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_refuses_what_is_of_no_family_too_small_or_changed() {
    let hub = hub().await;
    for (spec, said) in [
        (json!({"perNodeHostBits": 8}), "one of ipv4 and ipv6 is needed"),
        (json!({"ipv4": "10.0.0.0/16"}), "spec.perNodeHostBits"),
        (json!({"ipv4": "garbage", "perNodeHostBits": 8}), "it must be an IPv4 CIDR"),
        (json!({"ipv4": "fd00::/64", "perNodeHostBits": 8}), "it must be an IPv4 CIDR"),
        (json!({"ipv6": "10.0.0.0/16", "perNodeHostBits": 8}), "it must be an IPv6 CIDR"),
        (everybody(&["10.0.0.0/16"], 3), "greater than or equal to 4"),
        (everybody(&["10.0.0.0/25"], 8), "leave at least one block in ipv4"),
        (everybody(&["10.0.0.0/16", "fd00::/121"], 8), "leave at least one block in ipv6"),
        (
            json!({"ipv4": "10.0.0.0/25", "perNodeHostBits": 4, "perNodeHostBitsIPv4": 8}),
            "perNodeHostBitsIPv4 must leave at least one block in ipv4",
        ),
        (
            json!({"ipv6": "fd00::/121", "perNodeHostBits": 4, "perNodeHostBitsIPv6": 8}),
            "perNodeHostBitsIPv6 must leave at least one block in ipv6",
        ),
        (
            json!({"ipv6": "fd00::/64", "perNodeHostBits": 8, "perNodeHostBitsIPv6": 3}),
            "greater than or equal to 4",
        ),
        (
            json!({"ipv4": "10.0.0.0/16", "perNodeHostBits": 8, "nodeSelector": {"nodeSelectorTerms": []}}),
            "must have at least one node selector term",
        ),
        (selecting("matchExpressions", &requirement("", "Exists", &[])), "the key of a label"),
        (
            selecting("matchExpressions", &requirement("-a", "Exists", &[])),
            "must be the key of a label",
        ),
        (
            selecting("matchExpressions", &requirement("A.b/c", "Exists", &[])),
            "must be the key of a label",
        ),
        (selecting("matchExpressions", &requirement("a", "Near", &["b"])), "supported values"),
        (selecting("matchExpressions", &requirement("a", "In", &[])), "must be specified when"),
        (
            selecting("matchExpressions", &requirement("a", "Exists", &["b"])),
            "may not be specified when",
        ),
        (
            selecting("matchExpressions", &requirement("a", "Gt", &["1", "2"])),
            "must be specified single value",
        ),
        (selecting("matchExpressions", &requirement("a", "Lt", &["b"])), "must be an integer"),
        (selecting("matchFields", &requirement("spec.x", "In", &["a"])), "supported values"),
        (
            selecting("matchFields", &requirement("metadata.name", "Exists", &[])),
            "supported values",
        ),
        (
            selecting("matchFields", &requirement("metadata.name", "In", &["a", "b"])),
            "must be only one value",
        ),
    ] {
        let refusal = hub.create_refused(&cluster_cidr("refused", &spec));
        assert!(refusal.contains(said), "{spec}: {refusal}");
    }
    let dotted = hub.create_refused(&cluster_cidr("a.b", &everybody(&["10.0.0.0/16"], 8)));
    assert!(dotted.contains("must be a DNS label"), "{dotted}");

    let key = format!("{}/{}", "a.b".repeat(63), "C_d".repeat(21));
    for (of, requirement) in [
        ("matchExpressions", requirement(&key, "NotIn", &["b", ""])),
        ("matchExpressions", requirement("a", "DoesNotExist", &[])),
        ("matchExpressions", requirement("a", "Gt", &["-7"])),
        ("matchFields", requirement("metadata.name", "NotIn", &["a"])),
    ] {
        hub.create(&cluster_cidr("taken", &selecting(of, &requirement)));
        hub.run(&format!("delete {KIND} taken"));
    }

    hub.create(&cluster_cidr("kept", &labelled(&["10.0.0.0/16"], 8, &["foo"])));
    for change in [
        json!({"perNodeHostBits": 9}),
        json!({"perNodeHostBitsIPv4": 8}),
        json!({"perNodeHostBitsIPv6": 8}),
        json!({"ipv4": "10.0.0.0/15"}),
        json!({"ipv6": "fd00::/112"}),
        json!({"nodeSelector": null}),
    ] {
        let patch = json!({"spec": change}).to_string();
        let refusal = hub.refused(&format!("patch {KIND} kept --type=merge -p {patch}"));
        assert!(refusal.contains("the spec does not change"), "{refusal}");
    }
    let printed = tests::kubectl::table(&hub.run("get ccidr"));
    assert_eq!(printed[0], ["NAME", "PERNODEHOSTBITS", "IPV4", "IPV6", "READY", "AGE"]);
    assert_eq!(printed[1], ["kept", "8", "10.0.0.0/16", "AGE"]);
}

/// Before Kubernetes 1.33 an API server refuses writes of some objects that the rules of their CRD refuse, also of the
/// status alone.
fn takes_status_of_refused_objects(hub: &Kubectl) -> bool {
    let version: Value = serde_json::from_str(&hub.run("version -o json")).unwrap();
    let minor = version["serverVersion"]["minor"].as_str().unwrap();
    minor.trim_end_matches('+').parse::<u32>().unwrap() >= 33
}

/// A cluster that had these objects before the CRD had its rules, as with the CRD of upstream.
async fn stored_before(objects: &[Value]) -> Lent<Kubectl> {
    let (hub, file) = (hub().await, "config/crd/networking.x-k8s.io_clustercidrs.yaml");
    let text = std::fs::read_to_string(workspace().join(file)).unwrap();
    let mut crd: Value = serde_saphyr::from_str(&text).unwrap();
    without_rules(&mut crd);
    hub.patch(&format!("crd {KIND}"), "merge", &json!({"spec": crd["spec"]}));
    for object in objects {
        poll("the rules are gone", async || hub.may_create(object).then_some(())).await;
    }
    hub.run(&format!("replace -f {file}"));
    let mut number = 0;
    poll("the rules are in force", async || {
        number += 1;
        let mut another = objects[0].clone();
        another["metadata"]["name"] = json!(format!("another-{number}"));
        (!hub.may_create(&another)).then_some(())
    })
    .await;
    hub
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_cannot_be_used_are_reported_and_others_are_used() {
    let rows = [
        (
            "values",
            selecting("matchExpressions", &requirement("a", "In", &[])),
            "In of \"a\" needs values",
        ),
        (
            "operator",
            selecting("matchExpressions", &requirement("a", "Near", &[])),
            "operator \"Near\"",
        ),
        ("field", selecting("matchFields", &requirement("spec.x", "In", &["a"])), "metadata.name"),
        ("blocks", everybody(&["fd00::/56"], 8), "2^64"),
        ("both", everybody(&["10.1.0.0/16", "fd00::/50"], 8), "2^70"),
    ];
    let objects: Vec<Value> = rows.iter().map(|(name, spec, _)| cluster_cidr(name, spec)).collect();
    let scene = Scene::begin_on(stored_before(&objects).await, &[], "").await;
    let takes_status = takes_status_of_refused_objects(&scene.hub);
    for (name, _, said) in rows {
        let event = scene.event(name, "InvalidClusterCIDR").await;
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["source"]["component"], "multiCIDRRangeAllocator");
        let message = event["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
        let says_so = |it: &Value| condition(it, "Invalid")["status"] == "True";
        let object = scene.until(name, "says so", |it| !takes_status || says_so(it)).await;
        assert!(!takes_status || condition(&object, "Ready")["status"] == "False", "{object}");
        assert_eq!(object["metadata"]["finalizers"], Value::Null, "it is not held");
    }
    scene.hub.create(&cluster_cidr("good", &everybody(&["10.0.0.0/16"], 8)));
    assert_eq!(scene.add("a", &[]).await, ["10.0.0.0/24"]);
    scene.until("good", "is ready", is_ready).await;
    for name in ["values", "operator", "field", "blocks", "both"] {
        assert_eq!(scene.events(name, "InvalidClusterCIDR").len(), 1, "{name}");
        scene.delete(name);
        scene.until_gone(name).await;
    }
    scene.end(&[]).await;
}
