//! Patches of changes.

use serde_json::json;

use super::*;
use crate::testing::{Server, Widget};

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
