use std::time::Duration;

use super::*;

fn back(at: Instant) -> Return {
    Return { at, lane: Lane::Returned, since: None }
}

fn after(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

#[test]
fn keys_of_one_moment_come_back_in_the_order_in_which_they_were_put() {
    let (mut delays, now) = (Delays::new(), Instant::now());
    for key in 0..20_u8 {
        delays.put(key, back(now));
    }
    let came: Vec<u8> = std::iter::from_fn(|| delays.pop(now)).map(|(key, _)| key).collect();
    assert_eq!(came, (0..20).collect::<Vec<_>>());
}

#[test]
fn only_a_new_first_deadline_wakes_the_waiter() {
    let (mut delays, now) = (Delays::new(), Instant::now());
    assert!(delays.put("a", back(after(now, 5))));
    assert!(!delays.put("b", back(after(now, 5))), "the sleeper wakes for it anyway");
    assert!(!delays.put("c", back(after(now, 9))));
    assert!(delays.put("c", back(after(now, 2))));
    assert_eq!(delays.next(), Some(after(now, 2)));
}

#[test]
fn the_earliest_of_several_times_wins_and_the_key_comes_once() {
    let (mut delays, now) = (Delays::new(), Instant::now());
    for seconds in [5, 3, 4] {
        delays.put("a", back(after(now, seconds)));
    }
    assert_eq!(delays.pop(after(now, 2)), None);
    assert_eq!(delays.pop(after(now, 3)), Some(("a", back(after(now, 3)))));
    assert_eq!(delays.pop(after(now, 60)), None);
}

#[test]
fn a_key_that_was_removed_does_not_come_back_by_a_time_of_before() {
    let (mut delays, now) = (Delays::new(), Instant::now());
    delays.put("a", back(after(now, 3)));
    delays.remove(&"a");
    delays.put("a", back(after(now, 7)));
    assert_eq!(delays.pop(after(now, 6)), None);
    assert_eq!(delays.pop(after(now, 7)), Some(("a", back(after(now, 7)))));
}
