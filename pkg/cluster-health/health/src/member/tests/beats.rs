//! A cluster whose Lease speaks for it while no probe is answered.

use super::*;
use crate::guard::{GuardState, Ruling};
use crate::{Beat, explain};

/// Plays the script while the Lease says `beat`; how often an effect told that the path went down.
fn play(bench: &mut Bench, beat: Beat, script: &str) -> usize {
    bench.member.hear(beat);
    bench.play(script).iter().filter(|effect| effect.path_down).count()
}

/// `rule:our-outage-is-not-theirs`
#[test]
fn silence_is_published_as_the_lease_says() {
    // (beat; readiness, being offline and code after three probes without an answer)
    let rows = [
        (Beat::Absent, "TTTF", "FFFT", Some(Code::Timeout)),
        (Beat::Silent, "TTTF", "FFFT", Some(Code::Timeout)),
        (Beat::Unwell, "TTTF", "FFFF", Some(Code::Beat)),
        (Beat::Well, "TTTT", "FFFF", None),
    ];
    for (beat, ready, offline, code) in rows {
        let mut bench = Bench::new(policy(3, 1), None);
        let told = play(&mut bench, beat, "kxxx");
        assert_eq!((&*bench.ready, &*bench.offline), (ready, offline), "{beat:?}");
        let published = bench.member.published().unwrap();
        assert_eq!(published.finding.and_then(Finding::code), code, "{beat:?}");
        assert_eq!(told, usize::from(beat == Beat::Well), "{beat:?}");
    }
}

#[test]
fn an_answer_is_never_overruled() {
    for beat in [Beat::Well, Beat::Unwell, Beat::Silent, Beat::Absent] {
        let mut bench = Bench::new(policy(3, 1), None);
        play(&mut bench, beat, "kuuuk");
        assert_eq!((&*bench.ready, &*bench.offline), ("TTTFT", "FFFFF"), "{beat:?}");
    }
}

#[test]
fn a_path_that_is_down_is_told_once_until_the_cluster_answers_or_its_lease_ends() {
    let mut bench = Bench::new(policy(3, 1), None);
    assert_eq!(play(&mut bench, Beat::Well, "kxxxxxx"), 1);
    assert!(bench.member.is_path_down());
    let told = explain(&bench.member, bench.now().monotonic);
    assert!(told.starts_with("probes do not reach the cluster, but it still renews"), "{told}");
    assert_eq!(play(&mut bench, Beat::Well, "k"), 0);
    assert!(!bench.member.is_path_down());
    assert_eq!(explain(&bench.member, bench.now().monotonic), "/readyz responded with ok");
    assert_eq!(play(&mut bench, Beat::Well, "xxxx"), 1, "another time");
    assert_eq!(play(&mut bench, Beat::Silent, "x"), 0);
    assert!(!bench.member.is_path_down() && bench.offline.ends_with("FT"), "{}", bench.offline);
    // What was published as offline stays so until an answer.
    play(&mut bench, Beat::Well, "xxx");
    assert!(bench.offline.ends_with("TTTT"), "{}", bench.offline);
}

#[test]
fn the_path_of_a_cluster_that_is_not_ready_is_down_after_as_many_lost_probes_as_of_any_other() {
    for guarded in [false, true] {
        let mut bench = Bench::new(policy(3, 1), None);
        play(&mut bench, Beat::Well, "kuuu");
        bench.member.guarded = guarded;
        for (lost, expected) in [(1, 0), (2, 0), (3, 1), (4, 0)] {
            let told = play(&mut bench, Beat::Well, "x");
            let told = told + if guarded { obey(&mut bench, true, false) } else { 0 };
            assert_eq!(told, expected, "{lost} {guarded}");
            assert_eq!(bench.member.is_path_down(), lost >= 3, "{lost} {guarded}");
        }
        assert_eq!(bench.ready, "TTTFFFFF", "{guarded}");
        play(&mut bench, Beat::Well, "u");
        assert!(!bench.member.is_path_down());
    }
}

#[test]
fn the_message_is_written_when_a_path_goes_down_and_when_it_is_up_again() {
    let mut bench = Bench::new(policy(3, 1), None);
    let due = |bench: &Bench| bench.member.write_due(7, &bench.policy, bench.now().monotonic);
    play(&mut bench, Beat::Well, "k");
    bench.member.handed_over(7, bench.now().monotonic);
    bench.play("xx");
    assert_eq!(due(&bench), None);
    bench.play("x");
    assert!(due(&bench).is_some());
    bench.member.handed_over(7, bench.now().monotonic);
    bench.play("xx");
    assert_eq!(due(&bench), None);
    bench.play("k");
    assert!(due(&bench).is_some());
}

#[test]
fn of_a_cluster_that_never_answered_a_lease_says_nothing() {
    let mut bench = Bench::new(policy(3, 1), None);
    play(&mut bench, Beat::Well, "x");
    assert_eq!((&*bench.ready, &*bench.offline), ("U", "U"));
    let told = explain(&bench.member, bench.now().monotonic);
    assert!(told.starts_with("probes do not reach the cluster"), "{told}");
    bench.play("k");
    assert_eq!(bench.ready, "UT");
}

/// How often an effect of this ruling says that the path went down.
fn obey(bench: &mut Bench, release: bool, publish_partition: bool) -> usize {
    let (now, state) = (bench.now(), GuardState::Clear);
    let ruling = Ruling {
        before: state,
        state,
        ratio: 0.0,
        waiting: 1,
        release: release.then_some(now.monotonic),
        publish_partition,
        forgive: !release && !publish_partition,
        sample: Vec::new(),
        next_in: S(5),
    };
    let effect = bench.member.obey(&ruling, &bench.policy, now);
    usize::from(effect.is_some_and(|effect| effect.path_down))
}

/// `rule:our-outage-is-not-theirs`
#[test]
fn a_path_counts_as_down_when_the_guard_says_that_our_network_works() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.member.guarded = true;
    assert_eq!(play(&mut bench, Beat::Well, "kxxx"), 0);
    assert!(bench.member.waits());
    // We are cut off, which says nothing against its Lease.
    assert_eq!(obey(&mut bench, false, true), 0);
    assert_eq!(obey(&mut bench, false, false), 0);
    assert_eq!((&*bench.ready, bench.member.is_path_down()), ("TTTT", false));
    assert_eq!(play(&mut bench, Beat::Well, "xxx"), 0);
    assert_eq!(obey(&mut bench, true, false), 1);
    assert_eq!(play(&mut bench, Beat::Well, "xxx"), 0);
    assert!(!bench.member.waits() && bench.member.is_path_down());
    assert_eq!((&*bench.ready, &*bench.offline), ("TTTTTTTTTT", "FFFFFFFFFF"));
}

/// Else a few members behind a broken way would keep the guard from being clear for days.
#[test]
fn the_silence_of_a_member_whose_path_is_down_is_no_evidence_against_our_network() {
    let mut bench = Bench::new(policy(3, 1), None);
    let since = |bench: &Bench| bench.member.evidence().unwrap().unreachable_since;
    play(&mut bench, Beat::Well, "kxx");
    assert_eq!(since(&bench), None);
    bench.play("x");
    let began = since(&bench);
    bench.play("xx");
    assert!(began.is_some() && since(&bench) == began);
    bench.play("u");
    assert_eq!(since(&bench), None);
}

#[test]
fn a_lease_takes_back_what_it_said_and_no_answer() {
    let mut bench = Bench::new(policy(3, 1), None);
    play(&mut bench, Beat::Unwell, "kxxx");
    play(&mut bench, Beat::Well, "x");
    play(&mut bench, Beat::Unwell, "x");
    assert_eq!((&*bench.ready, &*bench.offline), ("TTTFUF", "FFFFUF"));
    let mut bench = Bench::new(policy(3, 1), None);
    play(&mut bench, Beat::Well, "kuuuxxx");
    assert_eq!((&*bench.ready, &*bench.offline), ("TTTFFFF", "FFFFFFF"));
}

/// The time of a path that is down is not observed.
#[test]
fn a_path_that_is_down_costs_no_availability() {
    // Without a guard the first failures count at once.
    for (beat, guarded, bad) in
        [(Beat::Well, true, 0), (Beat::Well, false, 20), (Beat::Silent, false, 50)]
    {
        let mut bench = Bench::new(policy(3, 1), None);
        bench.member.guarded = guarded;
        play(&mut bench, beat, "kkkxxxxxkk");
        let totals = bench.member.totals();
        assert_eq!(totals.bad, S(bad), "{beat:?} {guarded} {totals:?}");
    }
}
