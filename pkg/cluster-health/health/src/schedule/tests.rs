use std::hash::Hash;

use super::*;

impl Schedule {
    /// What its decisions depend on: times to come, and how long ago the last probe started.
    pub(crate) fn relative(&self, now: Instant, period: Duration) -> impl Hash {
        let Self { regular, triggered, started, probing } = *self;
        let left = |at: Instant| at.saturating_duration_since(now);
        let age = started.map(|at| now.saturating_duration_since(at).min(2 * period));
        (left(regular), triggered.map(left), age, probing)
    }
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
const MS: fn(u64) -> Duration = Duration::from_millis;
const CADENCE: Cadence =
    Cadence { period: secs(10), timeout: secs(3), confirm: secs(4), jitter: 0.1 };

#[test]
fn intervals_differ_by_the_jitter_and_confirmations_come_sooner() {
    let rows = [
        (false, 0.0, MS(9000)),
        (false, 0.5, secs(10)),
        (false, 0.999_999_999, MS(11_000)),
        (true, 0.5, secs(4)),
    ];
    for (confirming, draw, interval) in rows {
        let got = CADENCE.interval(confirming, draw);
        assert!(got.abs_diff(interval) < MS(1), "{got:?} instead of {interval:?}");
    }
    let frequent = Cadence { period: secs(2), ..CADENCE };
    assert_eq!(frequent.interval(true, 0.5), secs(2));
}

#[test]
fn a_tick_missed_because_a_probe_ran_long_fires_as_soon_as_it_ends() {
    let start = Instant::now();
    let mut schedule = Schedule::new(start);
    schedule.begin(start);
    schedule.complete(true, secs(2));
    assert_eq!(schedule.due(), Some(start + secs(2)));
    let late = start + secs(7);
    assert_eq!(schedule.begin(late), Cause::Regular);
    schedule.complete(true, secs(2));
    assert_eq!(schedule.due(), Some(late + secs(2)));
}

#[test]
fn nothing_is_due_while_a_probe_is_under_way() {
    let start = Instant::now();
    let mut schedule = Schedule::new(start);
    schedule.begin(start);
    schedule.trigger(start + secs(1));
    assert_eq!(schedule.due(), None);
    schedule.complete(true, secs(10));
    assert_eq!(schedule.due(), Some(start + secs(1)));
}

#[test]
fn an_event_brings_a_probe_at_once_and_many_events_one_each_second() {
    let start = Instant::now();
    let mut schedule = Schedule::new(start);
    schedule.begin(start);
    schedule.complete(true, secs(300));
    schedule.trigger(start + MS(200));
    schedule.trigger(start + MS(300));
    assert_eq!(schedule.due(), Some(start + secs(1)));
    assert_eq!(schedule.begin(start + secs(1)), Cause::Triggered);
    schedule.complete(true, secs(300));
    schedule.trigger(start + secs(60));
    assert_eq!(schedule.due(), Some(start + secs(60)));
}

#[test]
fn a_probe_that_did_not_count_leaves_the_next_regular_one_where_it_was() {
    let start = Instant::now();
    let mut schedule = Schedule::new(start);
    schedule.begin(start);
    schedule.complete(true, secs(10));
    schedule.trigger(start + secs(4));
    assert_eq!(schedule.begin(start + secs(4)), Cause::Triggered);
    schedule.complete(false, secs(10));
    assert_eq!(schedule.due(), Some(start + secs(10)));
}

#[test]
fn a_cancelled_probe_is_made_up_for_at_once() {
    let start = Instant::now();
    let mut schedule = Schedule::new(start);
    schedule.begin(start);
    schedule.abandon(start + secs(9));
    assert_eq!(schedule.due(), Some(start));
}

#[test]
fn a_void_probe_is_made_again_with_its_cause_and_no_sooner_than_the_spacing() {
    let start = Instant::now();
    let mut schedule = Schedule::new(start);
    schedule.discard(start);
    assert_eq!(schedule.due(), Some(start), "nothing was under way");
    schedule.begin(start);
    schedule.discard(start + MS(200));
    assert_eq!(schedule.due(), Some(start + secs(1)));
    assert_eq!(schedule.begin(start + secs(1)), Cause::Regular);
    schedule.complete(true, secs(10));
    schedule.trigger(start + secs(4));
    assert_eq!(schedule.begin(start + secs(4)), Cause::Triggered);
    schedule.discard(start + secs(6));
    assert_eq!(schedule.begin(start + secs(6)), Cause::Triggered);
    assert_eq!(schedule.regular, start + secs(11));
}
