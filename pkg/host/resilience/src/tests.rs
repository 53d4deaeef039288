//! Lines that pass, that are counted, and keys that are forgotten.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn one_line_passes_per_interval_with_the_number_of_those_before_it() {
    let (gate, start) = (LogGate::new(MINUTE), Instant::now());
    let asked = [0, 1, 30, 59, 60, 61, 119, 120].map(|s| gate.pass(start + Duration::from_secs(s)));
    assert_eq!(asked, [Some(0), None, None, None, Some(3), None, None, Some(2)]);
}

#[test]
fn a_clock_that_seems_to_go_back_holds_lines_back() {
    let (gate, earlier) = (LogGate::new(MINUTE), Instant::now());
    assert_eq!(gate.pass(earlier + MINUTE), Some(0));
    assert_eq!(gate.pass(earlier), None);
}

#[test]
fn a_reset_lets_the_next_line_pass_and_shows_whether_there_was_one() {
    let (gate, start) = (LogGate::new(MINUTE), Instant::now());
    assert!(!gate.reset());
    gate.pass(start);
    gate.pass(start);
    assert!(gate.reset());
    assert!(!gate.reset());
    assert_eq!(gate.pass(start), Some(0), "what was held back before the reset is not told");
}

#[test]
fn keys_have_intervals_of_their_own() {
    let (gate, start) = (KeyedLogGate::new(MINUTE), Instant::now());
    assert_eq!(gate.pass("a", start), Some(0));
    assert_eq!(gate.pass("b", start + MINUTE / 2), Some(0));
    assert_eq!(gate.pass("a", start + MINUTE / 2), None);
    assert_eq!(gate.pass("a", start + MINUTE), Some(1));
    assert_eq!(gate.pass("b", start + MINUTE), None);
}

#[test]
fn keys_that_fell_silent_take_no_memory() {
    let (gate, start) = (KeyedLogGate::new(MINUTE), Instant::now());
    for key in 0..1000 {
        gate.pass(key, start);
    }
    gate.pass(1000, start + MINUTE / 2);
    assert_eq!(gate.states.lock().len(), 1001);
    gate.pass(1001, start + MINUTE);
    assert_eq!(gate.states.lock().len(), 2);
}
