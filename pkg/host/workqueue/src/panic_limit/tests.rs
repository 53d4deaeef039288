//! When panics lead to a fresh start, and which are logged, on a paused clock.

use tokio::time::advance;

use super::*;

fn limit() -> PanicLimit {
    PanicLimit::new(IntCounter::new("panics", "panics").unwrap())
}

fn at(location: &str) -> Panic {
    Panic { location: location.into(), ..Panic::default() }
}

fn exceeded(limit: &PanicLimit, keys: impl IntoIterator<Item = usize>) -> Vec<bool> {
    keys.into_iter().map(|key| limit.record(key.to_string(), &at("a.rs:1")).exceeded).collect()
}

#[tokio::test(start_paused = true)]
async fn five_different_keys_within_a_minute_exceed_it() {
    let limit = limit();
    assert_eq!(
        exceeded(&limit, [1, 1, 2, 2, 3, 4, 5]),
        [false, false, false, false, false, false, true]
    );
    assert_eq!(limit.inner.counter.get(), 7);
}

#[tokio::test(start_paused = true)]
async fn one_key_never_exceeds_it_however_often_it_panics() {
    let limit = limit();
    assert!(!exceeded(&limit, [1; 1000]).contains(&true));
}

#[tokio::test(start_paused = true)]
async fn different_keys_over_more_than_a_minute_do_not_exceed_it() {
    let limit = limit();
    for key in 0..50 {
        assert_eq!(exceeded(&limit, [key]), [false]);
        advance(WINDOW / 4).await;
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_panic_again_after_a_fresh_start_do_not_count_and_the_limit_doubles() {
    let limit = limit();
    let starts = |keys: std::ops::Range<usize>| {
        exceeded(&limit, keys).into_iter().filter(|exceeded| *exceeded).count()
    };
    assert_eq!(starts(0..5), 1);
    assert_eq!(starts(0..14), 0, "five known ones and nine others");
    assert_eq!(starts(14..15), 1, "the tenth of the others");
    assert_eq!(starts(0..34), 0);
    assert_eq!(starts(34..35), 1);
}

#[tokio::test(start_paused = true)]
async fn after_an_hour_without_a_panic_the_count_starts_again() {
    let limit = limit();
    exceeded(&limit, 0..5);
    advance(MEMORY).await;
    assert_eq!(exceeded(&limit, 0..5), [false, false, false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn one_place_is_logged_once_a_minute_with_the_number_of_the_others() {
    let limit = limit();
    let show = |place| limit.record("key".into(), &at(place)).show;
    assert_eq!([show("a.rs:1"), show("a.rs:1"), show("b.rs:1")], [Some(0), None, Some(0)]);
    advance(WINDOW).await;
    assert_eq!(show("a.rs:1"), Some(1));
}
