//! Nodes in Kubernetes' protobuf. The numbers of the fields are those of `generated.proto` in
//! k8s.io/api/core/v1 and k8s.io/apimachinery.

use bytes::{BufMut as _, BytesMut};
use serde_json::Value;

use super::manifest::Facts;

/// Before every object that is not part of another object.
const ENVELOPE: &[u8] = b"k8s\0";
/// 2026-01-01 in seconds since 1970.
const CREATED: u64 = 1_767_225_600;

/// Tag and length of a field whose value has so many bytes.
pub(super) fn head(number: u8, length: usize) -> Vec<u8> {
    let mut head = tag(number, 2);
    varint(&mut head, length as u64);
    head
}

/// A field of bytes, or of a message.
pub(super) fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
    [&head(number, value.len()), value].concat()
}

/// A field of text.
pub(super) fn text(number: u8, value: &str) -> Vec<u8> {
    bytes(number, value.as_bytes())
}

fn number(field: u8, value: u64) -> Vec<u8> {
    let mut number = tag(field, 0);
    varint(&mut number, value);
    number
}

fn tag(field: u8, wire_type: u8) -> Vec<u8> {
    let mut tag = Vec::new();
    varint(&mut tag, u64::from(field) << 3 | u64::from(wire_type));
    tag
}

fn varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    into.push(value.to_le_bytes()[0]);
}

/// An entry of a map of texts.
pub(super) fn entry(key: &str, value: &str) -> Vec<u8> {
    [text(1, key), text(2, value)].concat()
}

/// The bytes around an object of `length` bytes: an envelope, and where `event` is given, a watch
/// event of that type with its length.
pub(super) fn around(event: Option<&str>, kind: &str, length: usize) -> (Vec<u8>, Vec<u8>) {
    let kind_meta = [text(1, "v1"), text(2, kind)].concat();
    let before = [ENVELOPE, &bytes(1, &kind_meta), &head(2, length)].concat();
    let after = [text(3, ""), text(4, "")].concat();
    let Some(event) = event else { return (before, after) };
    let raw = head(1, before.len() + length + after.len());
    let object = head(2, raw.len() + before.len() + length + after.len());
    let mut parts = [text(1, event), object, raw, before].concat();
    let message = u32::try_from(parts.len() + length + after.len()).expect("less than 4 GiB");
    parts.splice(0..0, message.to_be_bytes());
    (parts, after)
}

/// `ListMeta` as a field of a list.
pub(super) fn list_meta(version: u64, next: &str) -> Vec<u8> {
    bytes(1, &[text(2, &version.to_string()), text(3, next)].concat())
}

/// The parts of a Node that differ from those of other Nodes.
pub(super) struct Own {
    metadata: Vec<u8>,
    spec: Vec<u8>,
}

impl Own {
    /// The parts of a Node whose other metadata have so many bytes.
    pub(super) fn new(facts: &Facts<'_>, metadata: usize) -> Self {
        let version = text(6, &facts.version.to_string());
        let own = [text(1, facts.name), text(5, facts.uid), version].concat();
        let cidr = facts.cidr.map(|cidr| [text(1, cidr), text(7, cidr)].concat());
        Self {
            metadata: [head(1, own.len() + metadata), own].concat(),
            spec: bytes(2, &cidr.unwrap_or_default()),
        }
    }

    /// The length of the Node with these other parts.
    pub(super) fn length(&self, metadata: &[u8], status: &[u8]) -> usize {
        self.metadata.len() + metadata.len() + self.spec.len() + status.len()
    }

    /// Writes the Node.
    pub(super) fn write(&self, into: &mut BytesMut, metadata: &[u8], status: &[u8]) {
        for part in [&self.metadata, metadata, &self.spec, status] {
            into.put_slice(part);
        }
    }
}

/// The fields of `ObjectMeta` after the resource version.
pub(super) fn metadata(metadata: &Value, managed: &Value) -> Vec<u8> {
    let time = number(1, CREATED);
    let fields = bytes(1, managed["fieldsV1"].to_string().as_bytes());
    let managed = [
        of_text(1, &managed["manager"]),
        of_text(2, &managed["operation"]),
        of_text(3, &managed["apiVersion"]),
        bytes(4, &time),
        of_text(6, &managed["fieldsType"]),
        bytes(7, &fields),
    ];
    [
        bytes(8, &time),
        map(11, &metadata["labels"]),
        map(12, &metadata["annotations"]),
        bytes(17, &managed.concat()),
    ]
    .concat()
}

/// `NodeStatus` as a field of a Node.
pub(super) fn status(status: &Value) -> Vec<u8> {
    let mut message = Vec::new();
    for (field, name) in [(1, "capacity"), (2, "allocatable")] {
        for (key, amount) in status[name].as_object().into_iter().flatten() {
            message.extend(bytes(field, &[text(1, key), bytes(2, &of_text(1, amount))].concat()));
        }
    }
    let time = number(1, CREATED);
    for condition in list(&status["conditions"]) {
        let condition = [
            of_text(1, &condition["type"]),
            of_text(2, &condition["status"]),
            bytes(3, &time),
            bytes(4, &time),
            of_text(5, &condition["reason"]),
            of_text(6, &condition["message"]),
        ];
        message.extend(bytes(4, &condition.concat()));
    }
    for address in list(&status["addresses"]) {
        let address = [of_text(1, &address["type"]), of_text(2, &address["address"])];
        message.extend(bytes(5, &address.concat()));
    }
    for image in list(&status["images"]) {
        let mut fields: Vec<u8> = list(&image["names"]).flat_map(|it| of_text(1, it)).collect();
        fields.extend(number(2, image["sizeBytes"].as_u64().unwrap_or_default()));
        message.extend(bytes(8, &fields));
    }
    bytes(3, &message)
}

fn list(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().into_iter().flatten()
}

fn of_text(number: u8, value: &Value) -> Vec<u8> {
    text(number, value.as_str().unwrap_or_default())
}

fn map(number: u8, map: &Value) -> Vec<u8> {
    let pairs = map.as_object().into_iter().flatten();
    let entry = |(key, value): (&String, &Value)| entry(key, value.as_str().unwrap_or_default());
    pairs.flat_map(|pair| bytes(number, &entry(pair))).collect()
}
