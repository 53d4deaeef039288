use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;

fn noon() -> Timestamp {
    "2026-11-24T12:00:00Z".parse().unwrap()
}

fn sums(observed: u64, bad: u64) -> Sums {
    Sums { observed: S(observed), bad: S(bad) }
}

/// A record of full days, bad for as many seconds as the day is days ago.
fn full(now: Timestamp) -> Record {
    let mut record = Record::new(now);
    for day in (0..29).rev() {
        let end = now - S(86_400 * day);
        record.add(S(43_200 - day), false, end);
        record.add(S(day), true, end);
        record.add(S(43_200), false, end + S(43_199));
    }
    record
}

#[test]
fn a_text_is_short_and_reads_as_the_same_record() {
    let (now, mut worst) = (noon(), Record::new(noon()));
    worst.slots = [Slot { observed: MILLIS_OF_DAY, bad: MILLIS_OF_DAY }; DAYS as usize];
    for record in [Record::new(now), full(now), worst] {
        let text = record.encode();
        assert!(text.len() <= TEXT_MAX, "{}: {text}", text.len());
        assert_eq!(Record::decode(&text, now), Some(record));
    }
    assert_eq!(Record::new(now).encode(), "v1.20781.");
    let mut record = Record::new(now);
    record.add(S(300), true, now);
    record.add(S(5), false, now);
    assert_eq!(record.encode(), "v1.20781.sQKsAg");
}

#[test]
fn a_text_that_is_no_record_is_none() {
    let long = format!("v1.20781.{}", "A".repeat(256));
    for text in [
        "",
        "v1",
        "v1.",
        "v1.20781",
        "v2.20781.",
        "v1..",
        "v1.-1.",
        "v1.+1.",
        "v1. 1.",
        "v1.4294967296.",
        "v1.20781.=",
        "v1.20781.a b",
        "v1.20781.ä",
        "v1.20781.sQKsAg==",
        &long,
    ] {
        assert_eq!(Record::decode(text, noon()), None, "{text}");
    }
}

#[test]
fn slots_that_cannot_be_read_are_dropped_and_others_have_at_most_a_day() {
    let now = noon();
    let text = |newest: u32, bytes: &[u8]| format!("v1.{newest}.{}", URL_SAFE_NO_PAD.encode(bytes));
    // (newest day, bytes; sums of the 28 days)
    let too_much = [0x80, 0x80, 0x80, 0x01];
    let endless = [0x80, 0x80, 0x80, 0x80, 0x01];
    let rows: [(u32, &[u8], Sums); 10] = [
        (20781, &[10, 4], sums(10, 4)),
        (20781, &[10, 11], sums(10, 10)),
        (20781, &[10, 4, 7], sums(10, 4)),
        (20781, &[10, 4, 7, 0x80], sums(10, 4)),
        (20781, &[&too_much[..], &too_much[..]].concat(), sums(86_400, 86_400)),
        (20781, &[&[10, 4], &endless[..], &[1, 1]].concat(), sums(10, 4)),
        (20781, &[1; 64], sums(29, 29)),
        // Tomorrow by our clock: that of the writer may be ahead.
        (20782, &[10, 4, 20, 5], sums(30, 9)),
        (20783, &[10, 4, 20, 5, 30, 6], sums(50, 11)),
        (u32::MAX, &[1; 58], sums(0, 0)),
    ];
    for (newest, bytes, expected) in rows {
        let record = Record::decode(&text(newest, bytes), now).unwrap();
        let found = record.sums(now);
        assert_eq!(found, expected, "{newest} {bytes:?}");
        assert!(record.encode().len() <= TEXT_MAX);
    }
}

#[test]
fn time_belongs_to_the_days_in_which_it_passed() {
    let midnight: Timestamp = "2026-11-24T00:00:00Z".parse().unwrap();
    let mut record = Record::new(midnight);
    record.add(S(60), true, midnight + S(20));
    let days: Vec<_> = record.days().take(3).map(|(day, it)| (day, it.observed, it.bad)).collect();
    assert_eq!(days, [(20781, 20_000, 20_000), (20780, 40_000, 40_000), (20779, 0, 0)]);
}

#[test]
fn twenty_eight_days_are_summed_and_older_time_leaves_gradually() {
    let now = noon();
    let record = full(now);
    let at = |hours: u64| record.sums(now + S(3600 * hours)).bad.as_secs_f64();
    let all: f64 = (0..28).map(f64::from).sum();
    assert!((at(0) - all - 14.0).abs() < 0.01, "{}", at(0));
    assert!((at(6) - all - 7.0).abs() < 0.01, "{}", at(6));
    assert!((at(12) - all).abs() < 0.01, "{}", at(12));
    assert!((at(36) - (all - 27.0)).abs() < 0.01, "{}", at(36));
    assert_eq!(record.sums(now + S(86_400 * 40)), Sums::default());
}

#[test]
fn a_clock_that_was_set_back_keeps_all_but_days_to_come() {
    let now = noon();
    let mut record = full(now);
    record.add(S(10), true, now - S(86_400));
    // A full day that gets more time keeps its ratio.
    let bad = |record: &Record| record.sums(now).bad.as_millis().div_ceil(1000);
    assert_eq!(bad(&record), bad(&full(now)) + 10);
    record.add(S(10), true, now - S(86_400 * 3));
    let newest = record.days().next().unwrap().0;
    assert_eq!(newest, 20779, "the day after the day of the clock");
    // Of the two days that are gone, one had a bad second.
    assert_eq!(bad(&record), bad(&full(now)) + 20 - 1 - 10);
    record.add(S(10), true, now);
    assert_eq!(record.days().next().unwrap().0, 20781);
}

/// The sums by brute force: each second of each day, kept by its day.
fn naive(steps: &[(u64, Option<bool>)], now: Timestamp) -> BTreeMap<u32, (u32, u32)> {
    let (mut days, mut at) = (BTreeMap::<u32, (u32, u32)>::new(), now.as_second());
    for &(seconds, result) in steps {
        for second in at..at + seconds.cast_signed() {
            let Some(is_bad) = result else { continue };
            let day = days.entry(u32::try_from(second / 86_400).unwrap()).or_default();
            day.0 += 1;
            day.1 += u32::from(is_bad);
        }
        at += seconds.cast_signed();
    }
    days
}

proptest! {
    /// Time in steps of up to a day, observed or not, is what counting each second finds; and a
    /// record that was written and read after each step is the same.
    #[test]
    fn a_record_is_what_a_count_of_all_seconds_finds(
        steps in prop::collection::vec((1..20_000_u64, prop::option::of(any::<bool>())), 1..200),
    ) {
        let start = noon();
        let (mut record, mut restarted, mut now) = (Record::new(start), Record::new(start), start);
        for (seconds, result) in &steps {
            now += S(*seconds);
            if let Some(is_bad) = result {
                record.add(S(*seconds), *is_bad, now);
                restarted.add(S(*seconds), *is_bad, now);
            }
            restarted = Record::decode(&restarted.encode(), now).unwrap();
        }
        prop_assert_eq!(&restarted, &record);
        let days = naive(&steps, start);
        for (day, slot) in record.days() {
            let (observed, bad) = days.get(&day).copied().unwrap_or_default();
            prop_assert_eq!((slot.observed, slot.bad), (observed * 1000, bad * 1000), "day {}", day);
        }
    }

    /// No text makes it panic, or makes a record that counts more than its days hold.
    #[test]
    fn a_hostile_text_is_bounded(day in any::<u32>(), text in "[A-Za-z0-9_-]{0,260}", hours in 0..800_u64) {
        let now = noon() + S(3600 * hours);
        for text in [text.clone(), format!("v1.{day}.{text}"), format!("v1.20790.{text}")] {
            if let Some(mut record) = Record::decode(&text, now) {
                let Sums { observed, bad } = record.sums(now);
                prop_assert!(bad <= observed && observed <= DAY * 29);
                record.add(S(3600), true, now);
                prop_assert!(record.encode().len() <= TEXT_MAX);
            }
        }
    }
}
