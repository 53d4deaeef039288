use serde_json::json;

use super::*;
use crate::testing::Widget;

fn widget(name: &str, version: u64, bytes: usize) -> Arc<Object<Widget>> {
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(),
        },
        "spec": {"sizes": {}, "padding": "x".repeat(bytes)},
    });
    Arc::new(Object::read(object).unwrap())
}

/// Whether there is a copy newer than the first version.
fn is_kept(answered: &Answered<Widget>, name: &str) -> bool {
    answered.newest(&widget(name, 1, 0)).metadata.resource_version > 1
}

#[test]
fn the_oldest_copies_go_when_there_are_too_many_bytes() {
    let answered = Answered::default();
    for name in ["a", "b", "c"] {
        answered.keep(&widget(name, 2, MOST / 3 - 2 * BESIDE_TEXT));
    }
    assert!(["a", "b", "c"].iter().all(|name| is_kept(&answered, name)));
    // Answered again, it is the newest.
    answered.keep(&widget("a", 3, MOST / 3 - 2 * BESIDE_TEXT));
    answered.keep(&widget("d", 2, MOST / 3));
    assert_eq!(
        ["a", "b", "c", "d"].map(|name| is_kept(&answered, name)),
        [true, false, true, true]
    );
}

#[test]
fn thousands_of_small_copies_are_kept_and_their_number_is_bounded_too() {
    let answered = Answered::default();
    let names: Vec<String> = (0..2 * MOST / BESIDE_TEXT).map(|n| format!("n{n}")).collect();
    for name in &names {
        answered.keep(&widget(name, 2, 0));
    }
    let kept = names.iter().filter(|name| is_kept(&answered, name)).count();
    assert!((2000..MOST / BESIDE_TEXT).contains(&kept), "{kept}");
    assert!(is_kept(&answered, &names[names.len() - 1]));
}

#[test]
fn a_client_that_needs_no_copies_keeps_none() {
    let answered = Answered::nothing();
    answered.keep(&widget("a", 2, 0));
    assert!(!is_kept(&answered, "a") && answered.0.lock().bytes == 0);
}

#[test]
fn a_copy_that_went_takes_its_bytes_along() {
    let answered = Answered::default();
    for version in 2..20 {
        let object = widget("a", version, MOST / 2);
        answered.keep(&object);
        if version % 2 == 0 {
            answered.forget(&object.metadata.key);
        } else {
            answered.newest(&object);
        }
        answered.keep(&widget("a", version, MOST / 2));
    }
    answered.keep(&widget("b", 2, MOST / 4));
    assert_eq!(["a", "b"].map(|name| is_kept(&answered, name)), [true, true]);
    let mut copies = answered.0.lock();
    while let Some(object) = copies.kept.pop_oldest() {
        copies.bytes -= bytes_of(&object);
    }
    assert_eq!(copies.bytes, 0);
}

#[test]
fn an_object_above_the_bound_is_not_kept() {
    let answered = Answered::default();
    answered.keep(&widget("a", 2, MOST));
    assert!(!is_kept(&answered, "a"));
    answered.keep(&widget("b", 2, 0));
    assert!(is_kept(&answered, "b"));
}
