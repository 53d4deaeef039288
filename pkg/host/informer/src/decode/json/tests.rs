//! Events and pages read from lines of the API server.

use kube_api::Node;
use serde_json::json;

use super::*;
use crate::decode;

fn line(value: &serde_json::Value) -> Result<Event<Node>, Fault> {
    event(value.to_string().as_bytes())
}

#[test]
fn each_type_of_line_is_recognized() {
    let node = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}});
    let read = |kind: &str| line(&json!({"type": kind, "object": node})).unwrap();
    assert!(matches!(read("ADDED"), Event::Added(node) if node.resource_version == 7));
    assert!(matches!(read("MODIFIED"), Event::Modified(node) if &*node.name == "a"));
    assert!(matches!(read("DELETED"), Event::Deleted(node) if &*node.uid == "u"));
}

#[test]
fn the_object_may_come_before_its_type() {
    let text =
        r#"{"object":{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}},"type":"ADDED"}"#;
    assert!(matches!(event::<Node>(text.as_bytes()), Ok(Event::Added(_))));
}

#[test]
fn only_the_annotated_bookmark_ends_the_list() {
    let bookmark = |annotations: serde_json::Value| {
        let metadata = json!({"resourceVersion": "9", "annotations": annotations});
        match line(&json!({"type": "BOOKMARK", "object": {"metadata": metadata}})) {
            Ok(Event::Bookmark(mark)) => (mark.version, mark.ends_list),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(bookmark(json!({"k8s.io/initial-events-end": "true"})), (9, true));
    assert_eq!(bookmark(json!({"k8s.io/initial-events-end": "false"})), (9, false));
    assert_eq!(bookmark(json!({"other": "true"})), (9, false));
    assert_eq!(bookmark(json!(null)), (9, false));
}

#[test]
fn an_unreadable_object_is_named() {
    let broken = json!({"metadata": {"name": "worker-3", "uid": 5, "resourceVersion": "1"}});
    let fault = line(&json!({"type": "ADDED", "object": broken})).unwrap_err();
    assert!(fault.to_string().contains("object \"worker-3\""), "{fault}");
    let namespaced = json!({"metadata": {"namespace": "ns", "name": "x"}});
    let fault = line(&json!({"type": "ADDED", "object": namespaced})).unwrap_err();
    assert!(fault.to_string().contains("object \"ns/x\""), "{fault}");
    let fault = event::<Node>(b"<html>").unwrap_err();
    assert!(fault.to_string().contains("a line of 6 bytes"), "{fault}");
}

#[test]
fn an_unknown_type_of_line_is_unreadable() {
    assert!(matches!(
        line(&json!({"type": "RENAMED", "object": {}})),
        Err(Fault::Undecodable { .. })
    ));
}

#[test]
fn a_page_shows_its_version_and_whether_more_follows() {
    let read = |text: &str| page::<Node>(text.as_bytes()).unwrap();
    let first = read(r#"{"metadata":{"resourceVersion":"5","continue":"t"},"items":null}"#);
    assert_eq!((first.version, first.next, first.items.len()), (5, Some("t".into()), 0));
    let last = read(r#"{"metadata":{"resourceVersion":"5","continue":""},"items":[]}"#);
    assert_eq!(last.next, None);
}

#[test]
fn a_refusal_that_is_no_status_keeps_its_text() {
    let read = |body: &[u8]| decode::status(body);
    let status = read(b"upstream connect error");
    assert_eq!((status.code, status.message.as_str()), (0, "upstream connect error"));
    assert_eq!(read(br#"{"kind":"Status","code":500,"message":"m"}"#).message, "m");
}
