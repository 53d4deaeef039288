//! Whole objects, and what they refuse.

use serde_json::json;

use super::*;
use crate::Dynamic;
use crate::testing::{Server, Widget};

fn widget() -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "7",
            "managedFields": [{"manager": "kubectl"}], "annotations": {"k": "v"}},
        "spec": {"sizes": {"s": 1}, "colour": "red"},
        "status": {"ready": true, "phase": "Odd"},
    })
}

#[test]
fn everything_but_managed_fields_is_kept_whatever_the_type_knows() {
    let object = Object::<Widget>::read(widget()).unwrap();
    assert_eq!(object.body.spec.sizes["s"], 1);
    assert!(object.status.ready);
    let mut expected = widget();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(object.whole(), expected);
}

#[test]
fn a_kind_learnt_at_run_time_is_read_as_json() {
    let object = Object::<Dynamic>::read(widget()).unwrap();
    assert_eq!(object.body.keys().collect::<Vec<_>>(), ["spec"]);
    assert_eq!(object.status["phase"], "Odd");
}

#[test]
fn null_is_an_absent_field_of_the_typed_view_and_stays_in_the_object() {
    let mut whole = widget();
    whole["metadata"].as_object_mut().unwrap().remove("managedFields");
    (whole["status"]["ready"], whole["spec"]["sizes"]) = (json!(null), json!(null));
    let object = Object::<Widget>::read(whole.clone()).unwrap();
    assert!(!object.status.ready && object.body.spec.sizes.is_empty());
    assert_eq!(object.whole(), whole);
}

#[test]
fn the_key_of_a_namespaced_object_has_its_namespace() {
    let metadata = Object::<Widget>::read(widget()).unwrap().metadata;
    assert_eq!((&*metadata.key, metadata.name(), metadata.namespace()), ("ns/a", "a", Some("ns")));
    let mut cluster = widget();
    cluster["metadata"].as_object_mut().unwrap().remove("namespace");
    let metadata = Object::<Widget>::read(cluster).unwrap().metadata;
    assert_eq!((&*metadata.key, metadata.name(), metadata.namespace()), ("a", "a", None));
}

#[test]
fn an_object_of_another_form_is_refused_by_the_name_of_the_field_and_never_by_its_value() {
    for (at, value, field) in [
        ("/spec/sizes/s", json!("hunter2"), "spec.sizes.s"),
        ("/status/ready", json!("hunter2"), "status.ready"),
        ("/metadata/resourceVersion", json!("hunter2"), "metadata.resourceVersion"),
        ("/metadata/uid", json!(null), "metadata.uid"),
        ("/metadata", json!("hunter2"), "metadata"),
        ("/spec", json!("hunter2"), "spec"),
    ] {
        let mut whole = widget();
        *whole.pointer_mut(at).unwrap() = value;
        let error = Object::<Widget>::read(whole).unwrap_err();
        assert_eq!(error.field, field);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    assert!(Object::<Widget>::read(json!([])).is_err());
}

#[test]
fn what_is_printed_of_an_object_holds_no_field_of_it() {
    let text = format!("{:?}", Object::<Widget>::read(widget()).unwrap());
    assert!(text.contains("ns/a") && !text.contains("red"), "{text}");
}

/// A kind with secrets; only the colour is kept.
#[derive(Debug)]
enum Guarded {}

impl Schema for Guarded {
    type Body = serde_json::Map<String, Value>;
    type Status = Value;
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&["colour"]);
}

/// rule:unneeded-secrets-are-dropped
#[test]
fn fields_of_spec_that_a_schema_does_not_need_are_nowhere_in_its_objects() {
    let mut whole = widget();
    whole["spec"]["password"] = json!("hunter2");
    whole["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        json!(whole["spec"].to_string());
    let object = Object::<Guarded>::read(whole).unwrap();
    assert_eq!(object.body["spec"], json!({"colour": "red"}));
    assert_eq!(object.metadata.annotations.keys().collect::<Vec<_>>(), ["k"]);
    assert!(!object.whole().to_string().contains("hunter2"));
    assert_eq!(object.whole()["status"], widget()["status"]);
}

#[test]
fn a_patch_holds_the_difference_and_the_two_preconditions() {
    let widget = Server::with_widget().widget::<Widget>();
    let mut draft = Draft::of(&widget);
    draft.body.spec.sizes.insert("m".into(), 2);
    draft.metadata.finalizers.push("example.org/f".into());
    let patch = change_of(&widget, &draft).unwrap().unwrap();
    assert_eq!(
        patch,
        json!({
            "metadata": {"uid": "u1", "resourceVersion": "1", "finalizers": ["example.org/f"]},
            "spec": {"sizes": {"m": 2}},
        })
    );
}

#[test]
fn the_last_label_is_removed_by_name() {
    let widget = Server::with_widget().widget::<Widget>();
    let mut draft = Draft::of(&widget);
    draft.metadata.labels.clear();
    let patch = change_of(&widget, &draft).unwrap().unwrap();
    assert_eq!(patch["metadata"]["labels"], json!(null));
}

#[test]
fn a_draft_that_is_left_as_it_was_is_no_change() {
    let widget = Server::with_widget().widget::<Widget>();
    assert_eq!(change_of(&widget, &Draft::of(&widget)).unwrap(), None);
    assert_eq!(status_change_of(&widget, &widget.status.clone()).unwrap(), None);
}

#[test]
fn a_status_patch_has_only_the_status() {
    let widget = Server::with_widget().widget::<Widget>();
    let mut status = widget.status.clone();
    status.ready = true;
    let patch = status_change_of(&widget, &status).unwrap().unwrap();
    assert_eq!(
        patch,
        json!({"metadata": {"uid": "u1", "resourceVersion": "1"}, "status": {"ready": true}})
    );
}
