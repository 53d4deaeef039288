//! Kubernetes' protobuf, as far as the proxy makes it up or looks into it. The numbers are those of
//! apimachinery's `generated.proto`; like the server we write every field that is no pointer, empty
//! or not.

use bytes::{BufMut as _, Bytes, BytesMut};
use kube_api::protobuf::Fields;
use serde_json::Value;

/// Before every object that does not lie inside another one.
const MAGIC: &[u8] = b"k8s\0";

/// A message in the making.
#[derive(Default)]
struct Message(BytesMut);

impl Message {
    fn number(mut self, field: u8, value: u64) -> Self {
        self.0.put_u8(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u8, value: &[u8]) -> Self {
        self.0.put_u8(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.put_slice(value);
        self
    }

    fn text(self, field: u8, value: &Value) -> Self {
        self.bytes(field, value.as_str().unwrap_or_default().as_bytes())
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.put_u8(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.put_u8(value.to_le_bytes()[0]);
    }
}

/// An object as an answer has it.
pub(super) fn enveloped(api_version: &str, kind: &str, object: &[u8]) -> Bytes {
    let kind = Message::default().bytes(1, api_version.as_bytes()).bytes(2, kind.as_bytes());
    let unknown = Message::default().bytes(1, &kind.0).bytes(2, object).bytes(3, b"").bytes(4, b"");
    [MAGIC, &unknown.0].concat().into()
}

/// A Status, given as JSON.
pub(super) fn status(status: &Value) -> Bytes {
    let meta = Message::default().bytes(1, b"").bytes(2, b"").bytes(3, b"");
    let mut message = Message::default()
        .bytes(1, &meta.0)
        .text(2, &status["status"])
        .text(3, &status["message"])
        .text(4, &status["reason"]);
    let details = &status["details"];
    if !details.is_null() {
        let of = Message::default().text(1, &details["name"]).text(2, &details["group"]);
        let of = of.text(3, &details["kind"]);
        let of = causes(of, &details["causes"]);
        let of = of.number(5, details["retryAfterSeconds"].as_u64().unwrap_or_default());
        message = message.bytes(5, &of.text(6, &details["uid"]).0);
    }
    let message = message.number(6, status["code"].as_u64().unwrap_or_default());
    enveloped("v1", "Status", &message.0)
}

fn causes(details: Message, causes: &Value) -> Message {
    causes.as_array().into_iter().flatten().fold(details, |details, cause| {
        let cause = Message::default()
            .text(1, &cause["reason"])
            .text(2, &cause["message"])
            .text(3, &cause["field"]);
        details.bytes(4, &cause.0)
    })
}

/// An event of a watch, with the length before it that separates it from its neighbours.
pub(super) fn watch_event(kind: &str, enveloped: &[u8]) -> Bytes {
    let object = Message::default().bytes(1, enveloped);
    let event = Message::default().bytes(1, kind.as_bytes()).bytes(2, &object.0).0;
    let length = u32::try_from(event.len()).expect("an event of less than 4 GiB");
    [&length.to_be_bytes()[..], &event].concat().into()
}

/// The bookmark that ends the initial events of a watch.
pub(super) fn end_of_initial_events(api_version: &str, kind: &str, version: &str) -> Bytes {
    let annotation = Message::default().bytes(1, b"k8s.io/initial-events-end").bytes(2, b"true");
    let meta = Message::default().bytes(6, version.as_bytes()).bytes(12, &annotation.0);
    let object = Message::default().bytes(1, &meta.0);
    watch_event("BOOKMARK", &enveloped(api_version, kind, &object.0))
}

/// The items of an enveloped list.
pub(super) fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let object = inside(list).unwrap_or_default();
    fields(object).filter(|(number, _)| *number == 2).map(|(_, item)| item)
}

/// `metadata.resourceVersion` of an enveloped object.
pub(super) fn resource_version(object: &[u8]) -> Option<u64> {
    let version = field(field(inside(object)?, 1)?, 6)?;
    std::str::from_utf8(version).ok()?.parse().ok()
}

fn inside(enveloped: &[u8]) -> Option<&[u8]> {
    field(enveloped.strip_prefix(MAGIC)?, 2)
}

fn field(message: &[u8], wanted: u64) -> Option<&[u8]> {
    fields(message).find(|(number, _)| *number == wanted).map(|(_, value)| value)
}

/// The fields that are texts, bytes or messages.
fn fields(message: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    Fields::of(message)
        .map_while(Result::ok)
        .filter_map(|field| Some((field.number, field.bytes().ok()?)))
}
