//! Labels and taints of a Node are read from JSON and from protobuf.

use serde_json::{Value, json};

use super::*;

/// A field of protobuf that is a string or a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

fn in_json(labels: &Value, spec: &Value) -> LabelledNode {
    let metadata = json!({
        "name": "worker-1", "uid": "0f2c", "resourceVersion": "812", "labels": labels,
        "managedFields": [{"fieldsV1": {"f:metadata": {"f:labels": {}}}}],
    });
    serde_json::from_value(json!({"kind": "Node", "metadata": metadata, "spec": spec})).unwrap()
}

fn in_protobuf(labels: &[(&str, &str)], taints: &[&str], cidr: &str) -> LabelledNode {
    let mut meta = [field(1, b"worker-1"), field(5, b"0f2c"), field(6, b"812")].concat();
    for (key, value) in labels {
        meta.extend(field(11, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat()));
    }
    let mut spec = if cidr.is_empty() { Vec::new() } else { field(1, cidr.as_bytes()) };
    for taint in taints {
        spec.extend(field(5, &[field(1, taint.as_bytes()), field(3, b"NoSchedule")].concat()));
    }
    from_protobuf(&[field(1, &meta), field(2, &spec)].concat()).unwrap()
}

#[test]
fn a_node_without_pod_cidrs_has_its_labels_and_the_keys_of_its_taints() {
    let spec = json!({"taints": [{"key": "example.org/a", "effect": "NoSchedule"}, {"key": "b"}]});
    let node = in_json(&json!({"zone": "one", "empty": ""}), &spec);
    let marks = node.marks.clone().unwrap();
    assert_eq!(marks.labels.get("zone").map(AsRef::as_ref), Some("one"));
    assert_eq!(marks.labels.get("empty").map(AsRef::as_ref), Some(""));
    assert_eq!(marks.taints, ["example.org/a".into(), "b".into()]);
    let labels = [("zone", "one"), ("empty", "")];
    assert_eq!(in_protobuf(&labels, &["example.org/a", "b"], ""), node);
}

#[test]
fn a_node_with_pod_cidrs_has_no_marks() {
    let node = in_json(&json!({"zone": "one"}), &json!({"podCIDR": "10.0.0.0/24"}));
    assert_eq!(node.marks, None);
    assert_eq!(in_protobuf(&[("zone", "one")], &["b"], "10.0.0.0/24"), node);
}

#[test]
fn missing_labels_and_taints_are_none() {
    for node in [
        in_json(&Value::Null, &json!({})),
        in_json(&json!({}), &json!({"taints": null})),
        in_protobuf(&[], &[], ""),
    ] {
        assert_eq!(node.marks.as_deref(), Some(&NodeMarks::default()));
    }
}

#[test]
fn equal_marks_of_two_copies_are_kept_once() {
    let older = in_json(&json!({"zone": "one"}), &json!({}));
    let mut newer = in_json(&json!({"zone": "one"}), &json!({}));
    newer.share_with(&older);
    assert!(Arc::ptr_eq(older.marks.as_ref().unwrap(), newer.marks.as_ref().unwrap()));
    let mut changed = in_json(&json!({"zone": "two"}), &json!({}));
    changed.share_with(&older);
    assert_ne!(changed.marks, older.marks);
}

#[test]
fn marks_cost_an_assigned_node_one_pointer() {
    assert_eq!(size_of::<LabelledNode>(), size_of::<Node>() + size_of::<usize>());
}

#[test]
fn broken_messages_are_refused_and_never_panic() {
    let labels = field(11, &[field(1, b"zone"), field(2, b"one")].concat());
    let meta = [field(1, b"n"), field(5, b"u"), field(6, b"1"), labels].concat();
    let taint = field(5, &field(1, b"b"));
    let good = [field(1, &meta), field(2, &taint)].concat();
    assert!(from_protobuf(&good).is_ok());
    for cut in 0..good.len() {
        let _outcome = from_protobuf(&good[..cut]);
        for byte in 0..=255 {
            let mut changed = good.clone();
            changed[cut] = byte;
            let _outcome = from_protobuf(&changed);
        }
    }
}
