use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn what_the_type_does_not_know_survives_every_change_of_what_it_knows() {
    let rows = [
        // (whole, typed before, typed after, whole after)
        (json!({"a": 1, "x": 9}), json!({"a": 1}), json!({"a": 2}), json!({"a": 2, "x": 9})),
        (json!({"a": 1, "x": 9}), json!({"a": 1}), json!({}), json!({"x": 9})),
        (json!({"x": 9}), json!({}), json!({"a": 1}), json!({"a": 1, "x": 9})),
        (
            json!({"in": {"a": 1, "x": 9}, "y": 8}),
            json!({"in": {"a": 1}}),
            json!({"in": {"a": 2}}),
            json!({"in": {"a": 2, "x": 9}, "y": 8}),
        ),
        // The type's word wins where it speaks, and nowhere else.
        (json!({"a": {"x": 9}}), json!({"a": {}}), json!({"a": 3}), json!({"a": 3})),
    ];
    for (raw, before, after, expected) in rows {
        assert_eq!(overlay(Some(&raw), &before, &after), Some(expected), "{raw} {after}");
    }
}

#[test]
fn defaults_of_the_type_are_not_written_without_another_change() {
    let typed = json!({"phase": "Initializing", "conditions": []});
    assert_eq!(overlay(None, &typed, &typed), None);
    let raw = json!({"conditions": []});
    assert_eq!(overlay(Some(&raw), &typed, &typed), Some(raw));
    // An absent status that is set is set whole, so that fields the schema requires are there.
    let set = json!({"phase": "Initializing", "conditions": [{"type": "Ready"}]});
    assert_eq!(overlay(None, &typed, &set), Some(set));
}

#[test]
fn elements_of_lists_keep_their_unknown_fields_when_moved_changed_or_joined_by_others() {
    let raw = json!([
        {"type": "Ready", "status": "True", "x": 1},
        {"type": "Paused", "status": "False", "x": 2},
    ]);
    let before = json!([
        {"type": "Ready", "status": "True"},
        {"type": "Paused", "status": "False"},
    ]);
    let after = json!([
        {"type": "New", "status": "True"},
        {"type": "Paused", "status": "False"},
        {"type": "Ready", "status": "False"},
    ]);
    let expected = json!([
        {"type": "New", "status": "True"},
        {"type": "Paused", "status": "False", "x": 2},
        {"type": "Ready", "status": "False", "x": 1},
    ]);
    assert_eq!(overlay(Some(&raw), &before, &after), Some(expected));
}

#[test]
fn an_element_that_did_not_change_is_known_before_one_that_merely_has_the_same_identity() {
    let raw = json!([
        {"type": "InternalIP", "address": "10.0.0.1", "x": 1},
        {"type": "InternalIP", "address": "10.0.0.2", "x": 2},
    ]);
    let before = json!([
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "InternalIP", "address": "10.0.0.2"},
    ]);
    let after = json!([{"type": "InternalIP", "address": "10.0.0.2"}]);
    let expected = json!([{"type": "InternalIP", "address": "10.0.0.2", "x": 2}]);
    assert_eq!(overlay(Some(&raw), &before, &after), Some(expected));
}

#[test]
fn a_view_whose_list_has_another_length_than_the_object_replaces_the_list() {
    let after = json!(["c"]);
    assert_eq!(overlay(Some(&json!(["a", "b"])), &json!(["a"]), &after), Some(after));
}

#[test]
fn fields_that_are_laid_over_an_object_leave_everything_that_they_do_not_name() {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "x": 1});
    let ours = json!({"type": "Ours", "status": "True", "reason": ""});
    let laid = json!({"type": "Ours", "status": "True", "reason": "", "x": 1});
    let addresses = json!([{"type": "Real", "host": "a"}, {"type": "Real", "host": "b"}]);
    let rows = [
        // (whole, fields, whole after)
        (
            json!({"a": {"x": 9}, "y": 8}),
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1, "x": 9}, "y": 8}),
        ),
        (json!(null), json!({"a": 1}), json!({"a": 1})),
        // In their order: the last one tells installers something.
        (
            json!([condition("Ours", "False"), condition("Theirs", "True")]),
            json!([ours]),
            json!([laid, condition("Theirs", "True")]),
        ),
        (
            json!([condition("Theirs", "True")]),
            json!([ours]),
            json!([condition("Theirs", "True"), ours]),
        ),
        (
            json!([condition("Ours", "False"), condition("Theirs", "True")]),
            json!([{"type": "Ours", "$patch": "delete"}, {"type": "Gone", "$patch": "delete"}]),
            json!([condition("Theirs", "True")]),
        ),
        (addresses.clone(), json!([{"type": "Real", "$patch": "delete"}]), json!([])),
        // Two of one identity, or none, tell no element from another.
        (addresses.clone(), addresses.clone(), addresses.clone()),
        (addresses, json!([{"type": "Real", "host": "c"}]), json!([{"type": "Real", "host": "c"}])),
        (json!(["a", "b"]), json!(["c"]), json!(["c"])),
    ];
    for (raw, fields, expected) in rows {
        assert_eq!(lay(&raw, &fields), expected, "{raw} {fields}");
    }
}

/// Objects without nulls, which a merge patch cannot express.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
        Just(json!({})),
        Just(json!([])),
    ];
    let any =
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                fields(inner),
            ]
        });
    fields(any)
}

fn fields(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let fields = prop::collection::btree_map("[abc]", value, 0..4);
    fields.prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    #[test]
    fn patching_with_the_difference_gives_what_was_wanted(before in object(), after in object()) {
        let mut patched = before.clone();
        if let Some(patch) = between(&before, &after) {
            apply(&mut patched, &patch);
        }
        prop_assert_eq!(patched, after);
    }
}

#[test]
fn only_what_differs_is_in_the_patch() {
    let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2], "f": 5});
    let after = json!({"a": 1, "b": {"c": 1, "d": 3}, "e": [1], "g": 6});
    let patch = json!({"b": {"d": 3}, "e": [1], "f": null, "g": 6});
    assert_eq!(between(&before, &after), Some(patch));
}

#[test]
fn equal_objects_and_new_nulls_need_no_patch() {
    assert_eq!(between(&json!({"a": {"b": 1}}), &json!({"a": {"b": 1}})), None);
    assert_eq!(between(&json!({}), &json!({"a": null})), None);
}
