//! Panics that are caught, and the text about them.

use super::*;

#[tokio::test]
async fn a_contained_panic_shows_its_message_and_place() {
    let panic = contain(async { assert!(Vec::<u8>::new().len() == 1, "number {}", 4) }).await;
    let panic = panic.unwrap_err();
    assert_eq!(panic.message, "number 4");
    assert!(panic.location.contains("src/panics/tests.rs:"), "{}", panic.location);
    assert_eq!(panic.to_string(), format!("number 4 at {}", panic.location));
}

#[tokio::test]
async fn what_does_not_panic_is_not_changed() {
    let waited = contain(async {
        tokio::task::yield_now().await;
        7
    });
    assert_eq!(waited.await, Ok(7));
    assert_eq!(contain_call(|| 8), Ok(8));
}

#[tokio::test]
async fn a_panic_after_a_wait_is_caught_too() {
    let panicked = contain(async {
        tokio::task::yield_now().await;
        panic!("late")
    });
    let panic: Panic = match panicked.await {
        Ok(never) => never,
        Err(panic) => panic,
    };
    assert_eq!(panic.message, "late");
}

#[test]
fn containment_can_be_nested() {
    let outer = contain_call(|| {
        let inner = contain_call(|| panic!("inner")).unwrap_err();
        assert_eq!(inner.message, "inner");
        panic!("outer")
    });
    assert_eq!(outer.unwrap_err().message, "outer");
}

#[test]
fn a_payload_that_is_not_text_has_no_message() {
    let panic = contain_call(|| std::panic::panic_any(5_u8)).unwrap_err();
    assert_eq!(panic.message, "no message");
    assert_eq!(Panic { message: "m".into(), ..Panic::default() }.to_string(), "m");
}
