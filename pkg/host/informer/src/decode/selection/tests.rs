//! Objects of both encodings are marked by their labels, in events and in pages.

use kube_api::Node;
use kube_api::protobuf::ENVELOPE;
use serde_json::{Value, json};

use super::*;

/// Name, labels, and whether it is selected.
type Row = (&'static str, &'static [(&'static str, &'static str)], bool);

const NODES: [Row; 3] = [
    ("a", &[("zone", "one"), ("tier", "web")], true),
    ("b", &[("tier", "db")], false),
    ("c", &[], false),
];

fn selector() -> LabelSelector {
    LabelSelector::parse("tier=web").unwrap()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    // Two bytes of length are enough here.
    let low = u8::try_from(bytes.len() & 0x7f).unwrap() | 0x80;
    let high = u8::try_from(bytes.len() >> 7).unwrap();
    [&[number << 3 | 2, low, high], bytes].concat()
}

fn in_protobuf(name: &str, labels: &[(&str, &str)]) -> Vec<u8> {
    let mut meta = [field(1, name.as_bytes()), field(5, b"uid"), field(6, b"7")].concat();
    for (key, value) in labels {
        meta.extend(field(11, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat()));
    }
    field(1, &meta)
}

fn in_json(name: &str, labels: &[(&str, &str)]) -> Value {
    let labels: serde_json::Map<String, Value> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    json!({"metadata": {"name": name, "uid": "uid", "resourceVersion": "7", "labels": labels}})
}

fn enveloped(object: &[u8]) -> Vec<u8> {
    [ENVELOPE, &field(2, object)].concat()
}

fn mark_of(event: Result<Event<Node>, Fault>) -> bool {
    match event {
        Ok(Event::Added(node) | Event::Modified(node) | Event::Deleted(node)) => node.is_selected,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_object_of_an_event_is_marked_by_its_labels() {
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        for (name, labels, is_selected) in NODES {
            let line = json!({"type": kind, "object": in_json(name, labels)}).to_string();
            let marked = event(Encoding::Json, line.as_bytes(), Some(&selector()));
            assert_eq!(mark_of(marked), is_selected, "{kind} {name} in JSON");
            let object = field(1, &enveloped(&in_protobuf(name, labels)));
            let message = [field(1, kind.as_bytes()), field(2, &object)].concat();
            let marked = event(Encoding::Protobuf, &message, Some(&selector()));
            assert_eq!(mark_of(marked), is_selected, "{kind} {name} in protobuf");
            assert!(mark_of(event(Encoding::Protobuf, &message, None)), "without a selector");
        }
    }
}

#[test]
fn each_object_of_a_page_is_marked_by_its_own_labels() {
    let marks = |encoding, body: &[u8], selector: Option<&LabelSelector>| -> Vec<_> {
        let page: Page<Node> = page(encoding, body, selector).unwrap();
        page.items.iter().map(|node| (node.name.to_string(), node.is_selected)).collect()
    };
    let items: Vec<Value> = NODES.iter().map(|(name, labels, _)| in_json(name, labels)).collect();
    let in_json = json!({"metadata": {"resourceVersion": "7"}, "items": items}).to_string();
    let mut list = field(1, &field(2, b"7"));
    for (name, labels, _) in NODES {
        list.extend(field(2, &in_protobuf(name, labels)));
    }
    let expected: Vec<_> =
        NODES.iter().map(|(name, _, mark)| ((*name).to_owned(), *mark)).collect();
    assert_eq!(marks(Encoding::Json, in_json.as_bytes(), Some(&selector())), expected);
    assert_eq!(marks(Encoding::Protobuf, &enveloped(&list), Some(&selector())), expected);
    let all = marks(Encoding::Protobuf, &enveloped(&list), None);
    assert!(all.iter().all(|(_, mark)| *mark), "{all:?}");
}

#[test]
fn labels_that_cannot_be_read_are_a_fault() {
    let node = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "labels": 7}});
    let line = json!({"type": "ADDED", "object": node}).to_string();
    let read = event::<Node>(Encoding::Json, line.as_bytes(), Some(&selector()));
    assert!(matches!(read, Err(Fault::Undecodable { .. })), "{read:?}");
    assert!(event::<Node>(Encoding::Json, line.as_bytes(), None).is_ok());
}
