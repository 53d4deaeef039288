use std::hash::{DefaultHasher, Hash as _};
use std::time::Duration;

use super::*;

impl State<u8> {
    /// Adds what its future depends on while no key is put back: an age decides by its order alone.
    pub(crate) fn hash_into(&self, name: impl Fn(&u8) -> u8, hasher: &mut DefaultHasher) {
        let Self { epoch: _, added: _, returned: _, waiting, in_hand, arrivals: _, added_in_a_row } =
            self;
        let mut in_order: Vec<(&u8, &Waiting)> = waiting.iter().collect();
        in_order.sort_unstable_by_key(|(_, waiting)| waiting.order);
        for (key, waiting) in in_order {
            (name(key), waiting.lane == Lane::Added).hash(hasher);
        }
        let mut held: Vec<u8> = in_hand.keys().map(name).collect();
        held.sort_unstable();
        (waiting.len(), held, (*added_in_a_row).min(ADDED_IN_A_ROW)).hash(hasher);
    }
}

fn take_all(state: &mut State<&'static str>) -> Vec<&'static str> {
    let mut order = Vec::new();
    while let Taken::Key { key, .. } = state.take(Instant::now()) {
        state.done(&key, Instant::now());
        order.push(key);
    }
    order
}

fn add(state: &mut State<&'static str>, keys: &[&'static str], lane: Lane) {
    let now = Instant::now();
    for key in keys {
        state.add(key, lane, now, now);
    }
}

#[test]
fn added_keys_go_before_returned_ones_which_get_every_fifth_turn() {
    let mut state = State::new();
    add(&mut state, &["r1", "r2"], Lane::Returned);
    add(&mut state, &["a1", "a2", "a3", "a4", "a5", "a6"], Lane::Added);
    assert_eq!(take_all(&mut state), ["a1", "a2", "a3", "a4", "r1", "a5", "a6", "r2"]);
}

#[test]
fn a_returned_key_that_is_added_moves_to_the_added_ones() {
    let mut state = State::new();
    add(&mut state, &["r1", "r2"], Lane::Returned);
    add(&mut state, &["a1"], Lane::Added);
    let later = Instant::now() + Duration::from_secs(1);
    assert_eq!(state.add("r2", Lane::Added, later, later), Added::Known);
    assert_eq!(state.len(), 3);
    assert_eq!(take_all(&mut state), ["r2", "a1", "r1"], "as old as it was");
}

#[test]
fn an_added_key_that_returns_stays_where_it_is() {
    let mut state = State::new();
    add(&mut state, &["a1", "a2"], Lane::Added);
    add(&mut state, &["r1", "a2"], Lane::Returned);
    assert_eq!(take_all(&mut state), ["a1", "a2", "r1"]);
}

#[test]
fn an_older_key_goes_before_a_younger_one_that_came_first() {
    let (mut state, now) = (State::new(), Instant::now());
    state.add("young", Lane::Added, now, now);
    state.add("old", Lane::Added, now.checked_sub(Duration::from_millis(1)).unwrap(), now);
    assert_eq!(take_all(&mut state), ["old", "young"]);
}

#[test]
fn a_key_waits_from_the_moment_it_could_be_taken_however_old_it_is() {
    let (mut state, now) = (State::new(), Instant::now());
    let second = Duration::from_secs(1);
    state.add("a", Lane::Added, now, now + second);
    let taken = state.take(now + 3 * second);
    assert_eq!(taken, Taken::Key { key: "a", waited: 2 * second, more: false });
    assert_eq!(state.age(&"a"), Some(now));
}

#[test]
fn a_withdrawn_key_is_not_handed_out_not_even_after_its_current_handling() {
    let (mut state, now) = (State::new(), Instant::now());
    state.add("a", Lane::Added, now, now);
    state.take(now);
    assert_eq!(state.add("a", Lane::Added, now, now), Added::AfterCurrent);
    state.withdraw(&"a");
    assert_eq!(state.done(&"a", now), (Duration::ZERO, false));
    add(&mut state, &["b"], Lane::Returned);
    state.withdraw(&"b");
    assert_eq!((state.take(now), state.len()), (Taken::Nothing, 0));
}

#[test]
fn a_taken_key_says_whether_either_lane_has_more() {
    for lane in [Lane::Added, Lane::Returned] {
        let (mut state, now) = (State::new(), Instant::now());
        state.add("a", lane, now, now);
        state.add("b", lane, now, now);
        assert!(matches!(state.take(now), Taken::Key { key: "a", more: true, .. }), "{lane:?}");
        assert!(matches!(state.take(now), Taken::Key { key: "b", more: false, .. }), "{lane:?}");
    }
}

#[test]
fn moments_are_ordered_as_their_instants_and_lead_back_to_them() {
    let epoch = Epoch::now();
    let offset = Duration::from_nanos(1_500_000_001);
    let instants = [epoch.0.checked_sub(offset).unwrap(), epoch.0, epoch.0 + offset];
    let moments = instants.map(|at| epoch.moment(at));
    assert!(moments.is_sorted_by(|a, b| a < b));
    assert_eq!(moments.map(|moment| epoch.instant(moment)), instants);
}
