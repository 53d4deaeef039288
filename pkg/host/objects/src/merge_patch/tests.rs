//! The diff against the patching that the API server does.

use proptest::prelude::*;
use serde_json::json;

use super::*;

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
