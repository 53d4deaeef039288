//! Decoding of the fields that name the VM of a Node, in JSON and in protobuf.

use serde_json::{Value, json};

use super::*;

/// A field of protobuf that is a string or a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

fn in_json(spec: &Value, status: &Value) -> CloudNode {
    let metadata = json!({"name": "worker-1", "uid": "0f2c", "resourceVersion": "812"});
    let node = json!({"kind": "Node", "metadata": metadata, "spec": spec, "status": status});
    serde_json::from_value(node).unwrap()
}

fn in_protobuf(spec: &[u8], status: &[u8]) -> CloudNode {
    let meta = [field(1, b"worker-1"), field(5, b"0f2c"), field(6, b"812")].concat();
    from_protobuf(&[field(1, &meta), field(2, spec), field(3, status)].concat()).unwrap()
}

fn taint(key: &str, effect: &str) -> Vec<u8> {
    field(5, &[field(1, key.as_bytes()), field(3, effect.as_bytes())].concat())
}

fn condition(kind: &str, status: &str) -> Vec<u8> {
    field(4, &[field(1, kind.as_bytes()), field(2, status.as_bytes())].concat())
}

#[test]
fn the_vm_and_the_state_of_the_network_are_read_in_both_forms() {
    let spec = json!({
        "podCIDR": "10.0.0.0/24", "providerID": "gce://p/z/i",
        "taints": [{"key": "other", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}],
    });
    let status = json!({"conditions": [
        {"type": "Ready", "status": "True"}, {"type": "NetworkUnavailable", "status": "False"},
    ]});
    let node = in_json(&spec, &status);
    assert_eq!(&*node.provider_id, "gce://p/z/i");
    assert_eq!((node.network_is_ready, node.network_taint), (true, true));
    assert_eq!(node.node.pod_cidrs.iter().collect::<Vec<_>>(), ["10.0.0.0/24"]);
    let spec = [
        field(1, b"10.0.0.0/24"),
        field(3, b"gce://p/z/i"),
        taint("other", "NoSchedule"),
        taint("node.kubernetes.io/network-unavailable", "NoSchedule"),
    ];
    let status = [condition("Ready", "True"), condition("NetworkUnavailable", "False")];
    assert_eq!(in_protobuf(&spec.concat(), &status.concat()), node);
}

#[test]
fn anything_but_the_very_condition_and_taint_counts_for_nothing() {
    for (kind, status) in
        [("NetworkUnavailable", "True"), ("NetworkUnavailable", "Unknown"), ("Ready", "False")]
    {
        let conditions = json!([{"type": kind, "status": status}]);
        assert!(!in_json(&json!({}), &json!({"conditions": conditions})).network_is_ready);
        assert!(!in_protobuf(&[], &condition(kind, status)).network_is_ready, "{kind} {status}");
    }
    let key = "node.kubernetes.io/network-unavailable";
    for (key, effect) in [(key, "NoExecute"), ("network-unavailable", "NoSchedule")] {
        let taints = json!([{"key": key, "effect": effect}]);
        assert!(!in_json(&json!({"taints": taints}), &json!({})).network_taint);
        assert!(!in_protobuf(&taint(key, effect), &[]).network_taint, "{key} {effect}");
    }
}

#[test]
fn what_is_missing_or_null_is_empty() {
    let nulls = json!({"providerID": null, "taints": null});
    for node in [
        in_json(&json!({}), &json!({})),
        in_json(&nulls, &json!({"conditions": null})),
        in_protobuf(&[], &[]),
    ] {
        assert_eq!(&*node.provider_id, "");
        assert_eq!((node.network_is_ready, node.network_taint), (false, false));
    }
}

#[test]
fn a_newer_copy_takes_over_the_texts_that_are_equal() {
    let spec = json!({"providerID": "gce://p/z/i"});
    let older = in_json(&spec, &json!({}));
    let mut newer = in_json(&spec, &json!({}));
    newer.share_with(&older);
    assert!(Arc::ptr_eq(&newer.provider_id, &older.provider_id));
    assert!(Arc::ptr_eq(newer.key(), older.key()));
    assert_eq!((newer.uid(), newer.resource_version()), ("0f2c", 812));
}
