use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;
const DAY: Duration = Duration::from_secs(86_400);

/// A process whose clocks began together.
struct Clock(Moment);

impl Clock {
    fn new() -> Self {
        let wall = "2026-11-24T12:00:00Z".parse().unwrap();
        Self(Moment { monotonic: Instant::now(), wall })
    }

    fn at(&self, passed: Duration) -> Moment {
        Moment { monotonic: self.0.monotonic + passed, wall: self.0.wall + passed }
    }
}

fn close(ratio: Option<f64>, share: f64) -> bool {
    (ratio.unwrap() - share).abs() < 0.001
}

#[test]
fn a_ratio_is_the_share_of_observed_time_and_old_time_leaves_its_window() {
    let clock = Clock::new();
    let mut availability = Availability::new(None, clock.0.monotonic);
    let nothing = Ratios { hour: None, day: None, month: None };
    assert_eq!(availability.ratios(clock.0), nothing);
    // One hour with 90 bad seconds, probed every 10 s.
    for n in 0..=360 {
        let found = if (100..109).contains(&n) { Found::Bad } else { Found::Well };
        availability.record(found, clock.at(S(10 * n)), S(20));
    }
    let ratios = availability.ratios(clock.at(S(3600)));
    assert!(close(ratios.hour, 1.0 - 90.0 / 3600.0), "{ratios:?}");
    for n in 361..=1000 {
        availability.record(Found::Well, clock.at(S(10 * n)), S(20));
    }
    let ratios = availability.ratios(clock.at(S(10_000)));
    assert!(close(ratios.hour, 1.0) && close(ratios.day, 1.0 - 90.0 / 10_000.0), "{ratios:?}");
    assert_eq!(ratios.month, ratios.day);
    let sums = Sums { observed: S(10_000), bad: S(90) };
    assert_eq!((availability.totals(), availability.sums(clock.at(S(10_000)).wall)), (sums, sums));
    assert_eq!(availability.ratios(clock.at(40 * DAY)), nothing);
}

#[test]
fn a_gap_counts_no_longer_than_a_probe_can_be_away() {
    let clock = Clock::new();
    let mut availability = Availability::new(None, clock.0.monotonic);
    availability.record(Found::Well, clock.at(S(0)), S(20));
    availability.record(Found::Bad, clock.at(DAY), S(20));
    availability.record(Found::Well, clock.at(DAY + S(20)), S(20));
    assert_eq!(availability.ratios(clock.at(DAY + S(20))).month, Some(0.5));
}

#[test]
fn what_says_nothing_about_the_cluster_is_not_observed() {
    let clock = Clock::new();
    let mut availability = Availability::new(None, clock.0.monotonic);
    availability.record(Found::Bad, clock.at(S(0)), S(20));
    availability.record(Found::Bad, clock.at(S(10)), S(20));
    availability.skip();
    availability.record(Found::Well, clock.at(S(30)), S(20));
    availability.record(Found::Well, clock.at(S(40)), S(20));
    let sums = Sums { observed: S(20), bad: S(10) };
    assert_eq!(availability.totals(), sums);
}

#[test]
fn a_record_is_continued_and_the_shorter_windows_begin_with_the_process() {
    let clock = Clock::new();
    let mut before = Availability::new(None, clock.0.monotonic);
    before.record(Found::Bad, clock.at(S(0)), S(20));
    before.record(Found::Well, clock.at(S(10)), S(20));
    let text = before.to_keep().unwrap().encode();
    let record = Record::decode(&text, clock.at(S(60)).wall);
    let mut after = Availability::new(record, clock.at(S(60)).monotonic);
    after.record(Found::Well, clock.at(S(60)), S(20));
    after.record(Found::Well, clock.at(S(70)), S(20));
    let ratios = after.ratios(clock.at(S(70)));
    assert_eq!(ratios, Ratios { hour: Some(1.0), day: Some(1.0), month: Some(0.5) });
    assert_eq!(after.totals(), Sums { observed: S(10), bad: S(0) });
}

#[test]
fn a_window_that_slept_for_years_starts_anew() {
    let clock = Clock::new();
    let mut availability = Availability::new(None, clock.0.monotonic);
    availability.record(Found::Bad, clock.at(S(0)), S(20));
    availability.record(Found::Bad, clock.at(S(10)), S(20));
    let later = 3650 * DAY;
    availability.record(Found::Well, clock.at(later), S(20));
    availability.record(Found::Well, clock.at(later + S(10)), S(20));
    assert!(availability.ratios(clock.at(later + S(10))).month.unwrap() > 0.3);
    assert!(size_of::<Availability>() + size_of::<Kept>() <= 700);
}
