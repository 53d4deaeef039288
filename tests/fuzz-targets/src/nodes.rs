//! Nodes as the API server sends them, in JSON and protobuf, and its refusals in both.

use cidr::canonical;
use kube_api::protobuf::Fields;
use kube_api::quantity::Quantity;
use kube_api::{Cached, CloudNode, LabelledNode, Node, Status};
use serde_json::{Value, json};

pub(crate) fn are_decoded(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    match select % 4 {
        0 => {
            is_decoded::<Node>(data);
            is_decoded::<LabelledNode>(data);
            is_decoded::<CloudNode>(data);
        }
        1 => {
            let node: Option<Node> = Node::FROM_PROTOBUF.and_then(|read| read(data).ok());
            for cidr in node.iter().flat_map(|node| node.pod_cidrs.iter()) {
                let Ok(parsed) = cidr::parse(cidr) else { continue };
                assert_eq!(cidr::parse(&canonical(&parsed)).as_ref(), Ok(&parsed));
            }
            is_decoded::<LabelledNode>(data);
            is_decoded::<CloudNode>(data);
            for field in Fields::of(data) {
                let Ok(field) = field else { break };
                let _text = field.text();
            }
        }
        2 => {
            let (read, decoded) = (Status::read(data), Status::from_protobuf(data));
            for status in read.into_iter().chain(decoded.ok()) {
                let _missing = status.says_not_found("nodes", "a");
            }
        }
        _ => {
            let Ok(text) = std::str::from_utf8(data) else { return };
            let Ok(quantity) = text.parse::<Quantity>() else { return };
            assert!(quantity.rounded_to_milli() >= quantity, "{text:?}");
            assert!(quantity.rounded_to_whole() >= quantity.rounded_to_milli(), "{text:?}");
        }
    }
}

fn is_decoded<T: Cached>(data: &[u8]) {
    let decoded: Option<T> = T::FROM_PROTOBUF.and_then(|read| read(data).ok());
    let parsed: Option<T> = serde_json::from_slice(data).ok();
    for object in decoded.into_iter().chain(parsed) {
        let _identity = (object.key(), object.uid(), object.resource_version());
    }
}

/// A message of protobuf: fields with their numbers, each of bytes.
fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let field = |(number, bytes): &(u8, &[u8])| {
        let length = u8::try_from(bytes.len()).expect("seeds are short");
        let length = if length < 128 { vec![length] } else { vec![length | 128, length >> 7] };
        [&[number << 3 | 2][..], &length, bytes].concat()
    };
    fields.iter().flat_map(field).collect()
}

fn json_node() -> Value {
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "labels": {"k": "v"},
            "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["f"]},
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"],
            "providerID": "gce://p/z/a",
            "taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "NetworkUnavailable", "status": "True"}]},
    })
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let label = message(&[(1, b"k"), (2, b"v")]);
    let metadata = message(&[(1, b"a"), (5, b"u"), (6, b"7"), (11, &label)]);
    let taint = message(&[(1, b"t"), (2, b"v"), (3, b"NoSchedule")]);
    let cidr = b"10.0.0.0/24";
    let spec =
        message(&[(1, cidr), (3, b"gce://p/z/a"), (5, &taint), (7, cidr), (7, b"fd00::/64")]);
    let node = message(&[(1, &metadata), (2, &spec), (3, b"")]);
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
        "reason": "NotFound", "message": "m", "details": {"name": "a", "kind": "nodes",
        "causes": [{"reason": "r", "message": "m", "field": "spec"}], "retryAfterSeconds": 1}});
    let select = |select: u8, data: &[u8]| [&[select][..], data].concat();
    let mut seeds = vec![
        select(0, json_node().to_string().as_bytes()),
        select(1, &node),
        select(2, status.to_string().as_bytes()),
        select(2, &message(&[(2, b"Failure"), (3, b"m"), (4, b"NotFound")])),
    ];
    seeds.extend(
        ["100m", "1Gi", "-1.5e3", "0.000001n", "1E6", "9223372036854775807"]
            .map(|it| select(3, it.as_bytes())),
    );
    seeds
}
