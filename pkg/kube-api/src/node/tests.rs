//! The fields of a Node's JSON that reach the cache.

use serde_json::{Value, json};

use super::*;

fn read(node: &Value) -> Result<Node, serde_json::Error> {
    serde_json::from_str(&node.to_string())
}

fn node(spec: &Value) -> Value {
    json!({
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": "worker-1",
            "uid": "0f2c",
            "resourceVersion": "812",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"a": "b"},
            "managedFields": [{"fieldsV1": {"f:spec": {"f:podCIDR": {}, "f:podCIDRs": {}}}}],
        },
        "spec": spec,
        "status": {"images": [{"names": ["x"], "sizeBytes": 1}]},
    })
}

#[test]
fn a_node_keeps_name_uid_version_and_cidrs() {
    let spec = json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]});
    let node = read(&node(&spec)).unwrap();
    assert_eq!(&**node.key(), "worker-1");
    assert_eq!(node.uid(), "0f2c");
    assert_eq!(node.resource_version(), 812);
    assert!(!node.deleting);
    assert_eq!(node.pod_cidrs, ["10.0.0.0/24", "fd00::/64"].into_iter().collect());
}

#[test]
fn the_single_cidr_counts_only_without_a_list() {
    let rows = [
        (json!({"podCIDR": "10.0.0.0/24"}), vec!["10.0.0.0/24"]),
        (json!({"podCIDR": "10.0.0.0/24", "podCIDRs": []}), vec!["10.0.0.0/24"]),
        (json!({"podCIDR": "10.0.0.0/24", "podCIDRs": null}), vec!["10.0.0.0/24"]),
        (json!({"podCIDR": "a", "podCIDRs": ["b"]}), vec!["b"]),
        (json!({"podCIDR": ""}), vec![]),
        (json!({}), vec![]),
    ];
    for (spec, want) in rows {
        let read = read(&node(&spec)).unwrap();
        let got: Vec<&str> = read.pod_cidrs.iter().collect();
        assert_eq!(got, want, "{spec}");
    }
}

#[test]
fn a_node_without_spec_has_no_cidrs() {
    let mut bare = node(&json!({}));
    bare.as_object_mut().unwrap().remove("spec");
    assert!(read(&bare).unwrap().pod_cidrs.is_empty());
}

#[test]
fn text_that_is_no_cidr_is_kept_as_it_came() {
    let read = read(&node(&json!({"podCIDRs": ["no\ncidr", ""]}))).unwrap();
    assert_eq!(read.pod_cidrs, ["no\ncidr", ""].into_iter().collect());
}

#[test]
fn a_deletion_time_marks_the_node_as_deleting() {
    for (value, deleting) in [(json!("2026-01-01T00:00:00Z"), true), (Value::Null, false)] {
        let mut node = node(&json!({}));
        node["metadata"]["deletionTimestamp"] = value;
        assert_eq!(read(&node).unwrap().deleting, deleting);
    }
}

#[test]
fn a_version_that_is_not_a_number_is_refused() {
    for version in [json!(""), json!("+1"), json!("-1"), json!("1x"), json!(7), Value::Null] {
        let mut node = node(&json!({}));
        node["metadata"]["resourceVersion"] = version.clone();
        assert!(read(&node).is_err(), "{version}");
    }
}

#[test]
fn a_node_without_uid_or_version_is_refused() {
    for field in ["name", "uid", "resourceVersion"] {
        let mut node = node(&json!({}));
        node["metadata"].as_object_mut().unwrap().remove(field);
        let error = read(&node).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
}

#[test]
fn a_newer_copy_of_a_node_takes_over_its_texts() {
    let older = read(&node(&json!({}))).unwrap();
    let mut newer = read(&node(&json!({}))).unwrap();
    newer.share_with(&older);
    assert!(Arc::ptr_eq(&newer.name, &older.name) && Arc::ptr_eq(&newer.uid, &older.uid));
}

#[test]
fn a_node_stays_small() {
    // Two fat pointers, the version, the flag, the CIDRs. With the counts of its `Arc` these are
    // 88 bytes, which is all that an allocation of 96 has to give.
    assert!(size_of::<Node>() <= 72, "{}", size_of::<Node>());
}

/// A field of protobuf that is a string or a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

#[test]
fn a_node_in_protobuf_is_the_same_as_in_json() {
    let meta = [field(1, b"worker-1"), field(5, b"0f2c"), field(6, b"812")].concat();
    let both = [field(1, b"10.0.0.0/24"), field(7, b"10.0.0.0/24"), field(7, b"fd00::/64")];
    for (spec, json) in [
        (both.concat(), json!({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]})),
        (field(1, b"10.0.0.0/24"), json!({"podCIDR": "10.0.0.0/24"})),
        (field(3, b"aws:///zone/i-1"), json!({"providerID": "aws:///zone/i-1"})),
    ] {
        let message = [field(1, &meta), field(2, &spec), field(3, b"")].concat();
        assert_eq!(from_protobuf(&message), Ok(read(&node(&json)).unwrap()), "{json}");
    }
    assert_eq!(from_protobuf(&[]), Err(Malformed("a Node without metadata")));
}

#[test]
fn texts_come_out_as_they_went_in_however_long_and_many() {
    let long = "x".repeat(SHORT + 1);
    let umlaut = "ü".repeat(SHORT / 2);
    for texts in [
        vec![],
        vec![""],
        vec!["10.0.0.0/24"],
        vec!["255.255.255.255/32"],
        vec![&*umlaut],
        vec![&long[1..]],
        vec![&*long],
        vec!["10.0.0.0/24", "fd00::/64"],
        vec!["", "", ""],
    ] {
        let kept: PodCidrs = texts.iter().collect();
        assert_eq!(kept.iter().collect::<Vec<_>>(), texts);
        assert_eq!(kept.is_empty(), texts.is_empty());
        assert_eq!(format!("{kept:?}"), format!("{texts:?}"));
        assert_eq!(kept, texts.iter().collect());
    }
}

#[test]
fn one_text_of_an_ipv4_cidr_takes_no_memory_of_its_own() {
    let kept: PodCidrs = ["255.255.255.255/32"].iter().collect();
    assert!(matches!(kept.0, Texts::Short { .. }));
    assert!(size_of::<PodCidrs>() <= 24);
}

#[test]
fn other_texts_are_not_equal() {
    let kept = |texts: &[&str]| texts.iter().collect::<PodCidrs>();
    assert_ne!(kept(&[]), kept(&[""]));
    assert_ne!(kept(&["a"]), kept(&["b"]));
    assert_ne!(kept(&["a"]), kept(&["a\0"]));
    assert_ne!(kept(&["a"]), kept(&["a", "b"]));
}
