use super::*;

const FALLBACK: Duration = Duration::from_secs(15);

fn at(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap()
}

fn held_by(holder: &str, renewed: i64) -> LeaseRecord {
    LeaseRecord {
        holder: holder.into(),
        lease_seconds: Some(4),
        acquired: Some(at(5)),
        renewed: Some(at(renewed)),
        transitions: 7,
    }
}

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[test]
fn the_next_record_follows_from_the_previous_holder() {
    let free = LeaseRecord { holder: String::new(), ..held_by("", 10) };
    // (case, previous, acquired, transitions)
    let rows: [(&str, Option<LeaseRecord>, i64, i32); 5] = [
        ("a created lease starts at no transitions", None, 100, 0),
        ("our own lease keeps both", Some(held_by("me", 10)), 5, 7),
        ("another holder's is a transition", Some(held_by("you", 10)), 100, 8),
        ("a released lease is a transition too", Some(free), 100, 8),
        ("an empty spec counts as released", Some(LeaseRecord::default()), 100, 1),
    ];
    for (case, previous, acquired, transitions) in rows {
        let next = LeaseRecord::claim(previous.as_ref(), "me", 15, at(100));
        let wanted = LeaseRecord {
            holder: "me".into(),
            lease_seconds: Some(15),
            acquired: Some(at(acquired)),
            renewed: Some(at(100)),
            transitions,
        };
        assert_eq!(next, wanted, "{case}");
    }
}

#[test]
fn a_renewal_always_changes_the_record_even_when_the_clock_stands_still() {
    let first = LeaseRecord::claim(None, "me", 15, at(100));
    let second = LeaseRecord::claim(Some(&first), "me", 15, at(100));
    assert_ne!(first, second);
    let stepped_back = LeaseRecord::claim(Some(&second), "me", 15, at(3));
    assert_eq!(stepped_back.renewed, Some(at(3)), "the time shown is the clock's");
    assert_eq!(stepped_back.acquired, first.acquired);
}

#[test]
fn a_released_record_has_no_holder_and_one_second() {
    let wanted = LeaseRecord {
        holder: String::new(),
        lease_seconds: Some(1),
        acquired: Some(at(9)),
        renewed: Some(at(9)),
        transitions: 7,
    };
    assert_eq!(held_by("me", 1).release(at(9)), wanted);
}

#[test]
fn a_record_survives_the_lease_and_the_metadata_survives_the_record() {
    let mut lease = Lease::default();
    lease.metadata.name = Some("x".into());
    lease.metadata.labels = Some([("team".to_owned(), "infra".to_owned())].into());
    lease.metadata.resource_version = Some("12".into());
    lease.spec = Some(LeaseSpec { preferred_holder: Some("p".into()), ..LeaseSpec::default() });
    let written = held_by("me", 3).into_lease(lease.clone());
    assert_eq!(written.metadata, lease.metadata);
    assert_eq!(LeaseRecord::of(&written), held_by("me", 3));
    assert_eq!(written.spec.unwrap().preferred_holder, None, "the spec is replaced as a whole");
}

#[test]
fn times_are_cut_to_the_precision_of_the_wire() {
    let precise = Timestamp::from_nanosecond(1_234_567_891).unwrap();
    let record = LeaseRecord::claim(None, "me", 15, precise);
    let lease = record.clone().into_lease(Lease::default());
    let spec = lease.spec.unwrap();
    assert_eq!(spec.renew_time.unwrap().0.as_nanosecond(), 1_234_567_000);
    assert_eq!(record.renewed, Some(at(1_234_567)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_free_ours_held_or_expired() {
    let now = Instant::now();
    // (case, record, age in seconds, state)
    let rows = [
        ("no lease", None, 0, LeaseState::Absent),
        ("no lease, just before a leader gave up", None, 14, LeaseState::Absent),
        ("no lease for a whole lease duration", None, 15, LeaseState::Free),
        ("no holder", Some(held_by("", 1)), 0, LeaseState::Free),
        ("our own identity", Some(held_by("me", 1)), 0, LeaseState::Ours),
        ("our own, long silent", Some(held_by("me", 1)), 99, LeaseState::Ours),
        (
            "just before expiry",
            Some(held_by("you", 1)),
            3,
            LeaseState::Held { holder: "you".into() },
        ),
        ("at expiry", Some(held_by("you", 1)), 4, LeaseState::Expired),
    ];
    for (case, record, age, wanted) in rows {
        let mut observed = Observed::default();
        observed.note(record, now);
        assert_eq!(observed.state("me", now + secs(age), FALLBACK), wanted, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_without_a_usable_duration_lives_as_long_as_our_own_lease() {
    let now = Instant::now();
    for seconds in [None, Some(0), Some(-1)] {
        let mut observed = Observed::default();
        observed.note(Some(LeaseRecord { lease_seconds: seconds, ..held_by("you", 1) }), now);
        let held = LeaseState::Held { holder: "you".into() };
        let expired = LeaseState::Expired;
        assert_eq!(observed.state("me", now + secs(14), FALLBACK), held);
        assert_eq!(observed.state("me", now + secs(15), FALLBACK), expired);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_change_of_the_record_renews_it_whatever_its_timestamps_say() {
    let start = Instant::now();
    let mut observed = Observed::default();
    for (second, record, expired) in [
        (0, held_by("you", i64::from(u32::MAX) * 1_000_000), false), // a clock far ahead
        (3, held_by("you", i64::from(u32::MAX) * 1_000_000), false),
        (4, held_by("you", i64::from(u32::MAX) * 1_000_000), true),
        (5, held_by("you", 1), false), // a clock far behind: changed, hence alive
        (9, held_by("you", 1), true),
    ] {
        let now = start + secs(second);
        observed.note(Some(record), now);
        let state = observed.state("me", now, FALLBACK);
        assert_eq!(matches!(state, LeaseState::Expired), expired, "at {second}s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_stays_its_holders_who_may_have_renewed_it_until_it_was_found_gone() {
    let now = Instant::now();
    let mut observed = Observed::default();
    observed.note(Some(held_by("you", 1)), now);
    observed.note(None, now + secs(3));
    observed.note(None, now + secs(5));
    let held = LeaseState::Held { holder: "you".into() };
    assert_eq!(observed.state("me", now + secs(17), FALLBACK), held);
    let expired = LeaseState::Expired;
    assert_eq!(observed.state("me", now + secs(18), FALLBACK), expired);
    observed.note(Some(held_by("you", 1)), now + secs(20));
    assert_eq!(observed.state("me", now + secs(23), FALLBACK), held, "created again");
}

#[tokio::test(start_paused = true)]
async fn a_lease_deleted_after_its_release_may_have_had_another_holder_in_between() {
    let now = Instant::now();
    let mut observed = Observed::default();
    observed.note(Some(held_by("", 1)), now);
    assert_eq!(observed.state("me", now, FALLBACK), LeaseState::Free);
    observed.note(None, now + secs(1));
    assert_eq!(observed.state("me", now + secs(15), FALLBACK), LeaseState::Absent);
    assert_eq!(observed.state("me", now + secs(16), FALLBACK), LeaseState::Free);
}
