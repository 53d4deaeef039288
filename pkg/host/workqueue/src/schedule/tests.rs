//! The schedule against a naive model: random sequences of everything that can happen to a key.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    AddLater(u8, u64),
    Take,
    /// Ends the n-th key in hand: done, put back after so long, or quarantined.
    Done(usize),
    PutBack(usize, u64),
    Panic(usize),
    /// Time passes, and the timer runs.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (key, seconds, hand) = (0_u8..5, 0_u64..40, 0_usize..3);
    prop_oneof![
        4 => key.clone().prop_map(Step::Add),
        2 => (key, seconds.clone()).prop_map(|(key, after)| Step::AddLater(key, after)),
        6 => Just(Step::Take),
        4 => hand.clone().prop_map(Step::Done),
        1 => (hand.clone(), seconds.clone()).prop_map(|(hand, after)| Step::PutBack(hand, after)),
        1 => hand.prop_map(Step::Panic),
        3 => seconds.prop_map(Step::Pass),
    ]
}

/// Model of the promises about a key.
#[derive(Debug, Default, Clone)]
pub(crate) struct Naive {
    pub(crate) in_hand: bool,
    /// The key was added and has not been taken since.
    pub(crate) wanted: bool,
    /// Time at which the key comes back.
    pub(crate) returns: Option<u64>,
    kept_away_until: u64,
    panics: u32,
}

impl Naive {
    pub(crate) fn is_takeable(&self) -> bool {
        self.wanted && !self.in_hand
    }

    pub(crate) fn want(&mut self, now: u64) {
        if now < self.kept_away_until {
            self.come_back(self.kept_away_until);
        } else {
            self.wanted = true;
        }
    }

    pub(crate) fn come_back(&mut self, at: u64) {
        self.returns = Some(self.returns.map_or(at, |sooner| sooner.min(at)));
    }

    pub(crate) fn pass(&mut self, now: u64) {
        if self.returns.is_some_and(|at| at <= now) {
            self.returns = None;
            self.want(now);
        }
    }

    fn panic(&mut self, now: u64) {
        self.kept_away_until = now + [30, 60, 120, 240, 300][self.panics.min(4) as usize];
        self.panics += 1;
        self.wanted = false;
        self.returns = Some(self.kept_away_until);
    }
}

impl Schedule<u8> {
    /// Adds what its future depends on while no key panics or is put back: the order of keys, and times to come.
    pub(crate) fn hash_into(
        &self,
        now: Instant,
        name: impl Fn(&u8) -> u8,
        hasher: &mut DefaultHasher,
    ) {
        let Self { state, delays, quarantine: _, closed } = self;
        closed.hash(hasher);
        state.hash_into(&name, hasher);
        let Delays { due, by_time, arrivals: _ } = delays;
        for key in by_time.values() {
            let (Return { at, lane, since: _ }, _) = due[key];
            (name(key), at - now, lane == Lane::Added).hash(hasher);
        }
    }
}

struct Both {
    schedule: Schedule<u8>,
    keys: BTreeMap<u8, Naive>,
    in_hand: Vec<u8>,
    start: Instant,
    now: u64,
}

impl Both {
    fn at(&self) -> Instant {
        self.start + Duration::from_secs(self.now)
    }

    fn model(&mut self, key: u8) -> &mut Naive {
        self.keys.entry(key).or_default()
    }

    fn release(&mut self) {
        let now = self.at();
        self.schedule.release(now, |_| {});
        let now = self.now;
        self.keys.values_mut().for_each(|key| key.pass(now));
    }

    fn nth_in_hand(&self, hand: usize) -> Option<u8> {
        self.in_hand.get(hand % self.in_hand.len().max(1)).copied()
    }

    fn done(&mut self, key: u8) {
        let now = self.at();
        self.schedule.done(&key, now);
        self.in_hand.retain(|held| *held != key);
        self.model(key).in_hand = false;
    }

    fn apply(&mut self, step: &Step) {
        let (at, now) = (self.at(), self.now);
        match *step {
            Step::Add(key) => {
                self.schedule.add(key, at);
                self.model(key).want(now);
            }
            Step::AddLater(key, after) => {
                self.schedule.add_later(key, Duration::from_secs(after), at);
                self.model(key).come_back(now + after);
                self.release();
            }
            Step::Take => self.take(),
            Step::Done(hand) => {
                let Some(key) = self.nth_in_hand(hand) else { return };
                self.schedule.clear_record(&key);
                let model = self.model(key);
                (model.panics, model.kept_away_until) = (0, 0);
                self.done(key);
            }
            Step::PutBack(hand, after) => {
                let Some(key) = self.nth_in_hand(hand) else { return };
                self.schedule.put_back(&key, Duration::from_secs(after), at);
                self.model(key).come_back(now + after);
                self.done(key);
                self.release();
            }
            Step::Panic(hand) => {
                let Some(key) = self.nth_in_hand(hand) else { return };
                self.schedule.quarantine(&key, at);
                self.model(key).panic(now);
                self.done(key);
            }
            Step::Pass(seconds) => {
                self.now += seconds;
                self.release();
            }
        }
    }

    fn take(&mut self) {
        let at = self.at();
        match self.schedule.take(at) {
            Taken::Nothing => {
                assert!(!self.keys.values().any(Naive::is_takeable), "missed: {:?}", self.keys);
            }
            Taken::Key { key, .. } => {
                let model = self.model(key);
                assert!(model.is_takeable(), "{key} is {model:?}");
                (model.in_hand, model.wanted) = (true, false);
                self.in_hand.push(key);
            }
        }
    }

    fn check(&self) {
        let wanted = self.keys.values().filter(|key| key.wanted).count();
        assert_eq!(self.schedule.len(), wanted, "{:?}", self.keys);
        let panicked = self.keys.values().filter(|key| key.panics > 0).count();
        assert_eq!(self.schedule.quarantined(), panicked);
        let first = self.keys.values().filter_map(|key| key.returns).min();
        let next = self.schedule.next_return().map(|at| at.duration_since(self.start).as_secs());
        assert_eq!(next, first, "when the timer looks again");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_key_is_handed_out_when_it_should_be_and_at_no_other_time(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let (start, keys) = (Instant::now(), BTreeMap::new());
        let mut both =
            Both { schedule: Schedule::new(), keys, in_hand: Vec::new(), start, now: 0 };
        for step in &steps {
            both.apply(step);
            both.check();
        }
    }
}

#[test]
fn a_closed_schedule_keeps_nothing_and_takes_nothing_in() {
    let (mut schedule, now, second) = (Schedule::new(), Instant::now(), Duration::from_secs(1));
    schedule.add(1_u8, now);
    schedule.add_later(2, second, now);
    schedule.close();
    assert_eq!((schedule.len(), schedule.next_return()), (0, None));
    assert_eq!(schedule.add(3, now), Added::Known);
    assert!(!schedule.add_later(4, second, now));
    assert_eq!((schedule.len(), schedule.next_return()), (0, None));
}

#[test]
fn a_wait_that_overflows_the_clock_outlives_every_process() {
    let (mut schedule, now) = (Schedule::new(), Instant::now());
    schedule.add_later(1_u8, Duration::MAX, now);
    let years = schedule.next_return().unwrap().duration_since(now).as_secs() / (365 * 24 * 3600);
    assert_eq!(years, 30);
}

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
