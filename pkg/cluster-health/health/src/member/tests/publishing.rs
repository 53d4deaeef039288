//! Tables of the state that is published after each probe.

use proptest::prelude::*;

use super::*;
use crate::guard::{GuardState, Ruling};

#[test]
fn what_is_published_follows_runs_of_equal_results() {
    // (failure and success threshold, probes, Ready after each, its transition time, Offline at
    // last)
    let long = "k".repeat(101) + "xkk";
    let rows: [(u32, u32, &str, &str, i64, &str); 19] = [
        (3, 1, "k", "T", 0, "F"),
        (3, 1, "x", "F", 0, "T"),
        (3, 1, "kkkkkkkkkkxkk", "TTTTTTTTTTTTT", 0, "F"),
        (3, 1, "kkkkkxxxx", "TTTTTTTFF", 70, "T"),
        (3, 1, "kxxkxxkxxk", "TTTTTTTTTT", 0, "F"),
        (3, 1, "kxkxkxkxkx", "TTTTTTTTTT", 0, "F"),
        (3, 1, "kxxxk", "TTTFT", 40, "F"),
        (3, 3, "kxxxkkk", "TTTFFFT", 60, "F"),
        (3, 3, "kxxxkkxkkk", "TTTFFFFFFT", 90, "F"),
        (3, 1, "kuxu", "TTTF", 30, "F"),
        (3, 1, "kxxxuux", "TTTFFFF", 30, "T"),
        (1, 1, "kxk", "TFT", 20, "F"),
        (3, 1, "kck", "TTT", 0, "F"),
        (3, 1, "kccck", "TTTFT", 40, "F"),
        (3, 1, "ck", "FT", 10, "F"),
        (3, 1, "kkk~x", "TTTF", 30, "T"),
        (3, 3, "kksk", "TTUT", 30, "F"),
        // rule:what-we-could-not-ask-changes-nothing
        (3, 1, "kvvvvxvxvx", "TTTTTTTTTF", 90, "T"),
        (3, 2, "xkvk", "FFFT", 30, "F"),
    ];
    for (failure, success, probes, ready, since, offline) in rows {
        let mut bench = Bench::new(policy(failure, success), None);
        bench.play(probes);
        assert_eq!(bench.ready, ready, "{failure}/{success} {probes}");
        let published = bench.member.published().unwrap();
        assert_eq!(published.ready.since, wall(since), "{failure}/{success} {probes}");
        assert_eq!(
            &published.offline.status.as_str()[..1],
            offline,
            "{failure}/{success} {probes}"
        );
    }
    let mut bench = Bench::new(policy(100, 1), None);
    bench.play(&long);
    assert_eq!(bench.ready, "T".repeat(104));
    assert_eq!(bench.member.published().unwrap().ready.since, wall(0));
}

/// rule:what-we-could-not-ask-changes-nothing
#[test]
fn a_cluster_that_could_not_be_asked_grows_stale_and_its_task_is_not_stuck() {
    let policy = policy(3, 1);
    let mut bench = Bench::new(policy, None);
    bench.play("k");
    let (stale, stuck) = (bench.member.stale_at(&policy), bench.member.stuck_at(&policy));
    bench.play("vv");
    assert_eq!(bench.member.stale_at(&policy), stale);
    assert_eq!(bench.member.stuck_at(&policy), stuck + S(20));
    assert_eq!(bench.member.due(), Some(bench.start + S(30)));
    bench.play("s");
    assert_eq!(bench.ready, "TTTU");
}

#[test]
fn the_transition_time_of_offline_moves_when_offline_does() {
    let mut bench = Bench::new(policy(3, 1), None);
    let mut moved = Vec::new();
    for letter in "kxxxuuxccc".chars() {
        bench.step(letter);
        let offline = bench.member.published().unwrap().offline;
        if moved.last() != Some(&offline.since) {
            moved.push(offline.since);
        }
    }
    assert_eq!(bench.offline, "FFFTFFTUUU");
    assert_eq!(moved, [0, 30, 40, 60, 70].map(wall));
    assert_eq!(bench.member.published().unwrap().ready.since, wall(30));
}

/// rule:a-restart-changes-nothing
#[test]
fn a_restart_goes_on_from_what_the_object_says() {
    let seeded = |health| Published::seed(health, wall(-500), wall(-500), Some(wall(-10)));
    let mut bench = Bench::new(policy(3, 1), Some(seeded(Health::Ready)));
    let effects = bench.play("xxk");
    assert_eq!(bench.ready, "TTT");
    assert_eq!(bench.member.published().unwrap().ready.since, wall(-500));
    assert!(effects.iter().all(|effect| effect.change == Change::Nothing));

    let mut bench = Bench::new(policy(3, 2), Some(seeded(Health::Unreachable)));
    let effects = bench.play("xkk");
    assert_eq!(bench.ready, "FFT");
    assert_eq!((effects[0].change, effects[1].change), (Change::Nothing, Change::Nothing));

    let mut bench = Bench::new(policy(3, 3), Some(seeded(Health::Unknown)));
    bench.play("k");
    assert_eq!(bench.ready, "T");
}

#[test]
fn effects_tell_transitions_other_reasons_and_first_failures() {
    let mut bench = Bench::new(policy(2, 1), None);
    let effects = bench.play("kxxuuk");
    let ready = |from: Option<Status>, to| Change::Ready { from, to };
    let changes: Vec<_> = effects.iter().map(|effect| effect.change).collect();
    let (well, ill) = (Status::True, Status::False);
    assert_eq!(
        changes,
        [
            ready(None, well),
            Change::Nothing,
            ready(Some(well), ill),
            Change::Reason,
            Change::Nothing,
            ready(Some(ill), well),
        ]
    );
    let first: Vec<_> = effects.iter().map(|effect| effect.first_failure).collect();
    assert_eq!(first, [false, true, false, false, false, false]);
}

/// rule:a-restart-changes-nothing
#[test]
fn a_cluster_taken_over_while_it_fails_has_no_first_failure_again() {
    // (what the object says, whether a failure is the first of a run)
    let rows = [
        (None, true),
        (Some(Health::Ready), true),
        (Some(Health::Unknown), true),
        (Some(Health::Unreachable), false),
        (Some(Health::NotReady), false),
    ];
    for (health, first) in rows {
        let published = health.map(|it| Published::seed(it, wall(-500), wall(-500), None));
        let effects = Bench::new(policy(3, 1), published).play("x");
        assert_eq!(effects[0].first_failure, first, "{health:?}");
    }
}

#[test]
fn the_probe_time_is_the_start_of_the_last_probe_whatever_it_found() {
    let mut bench = Bench::new(policy(3, 1), None);
    for (letter, second) in "kxkxxxxk".chars().zip((0..).step_by(10)) {
        bench.step(letter);
        assert_eq!(bench.member.published().unwrap().probed, Some(wall(second)));
    }
}

#[test]
fn a_flapping_cluster_needs_three_successes_and_fails_as_soon_as_ever() {
    let damping = Damping { transitions: 6, window: S(600), min_success: 3 };
    let mut bench = Bench::new(Policy { damping, ..policy(1, 1) }, None);
    let effects = bench.play("kxkxkxkxkkxkkk");
    assert_eq!(bench.ready, "TFTFTFTFFFFFFT");
    let told: Vec<_> = effects.iter().filter(|effect| effect.flapping).collect();
    assert_eq!(told.len(), 1);
    assert!(bench.member.is_damped());
    bench.play("x");
    assert!(bench.ready.ends_with("TF"));
}

/// rule:a-pause-knows-nothing
#[test]
fn after_a_pause_the_first_result_is_published_whatever_was_true_before() {
    for (before, after, ready, since) in
        [("kx", "x", "F", 20), ("kx", "k", "T", 20), ("xk", "x", "F", 20), ("x", "k", "T", 10)]
    {
        let mut bench = Bench::new(policy(3, 2), None);
        bench.play(before);
        bench.member.pause();
        assert_eq!(bench.member.published(), None);
        assert_eq!((bench.member.failures(), bench.member.successes()), (0, 0));
        bench.member.resume(bench.now().monotonic);
        bench.play(after);
        let published = bench.member.published().unwrap();
        assert_eq!(&published.ready.status.as_str()[..1], ready, "{before} {after}");
        assert_eq!(published.ready.since, wall(since), "{before} {after}");
    }
}

/// rule:our-outage-is-not-theirs
#[test]
fn a_result_of_old_inputs_does_not_wait_for_the_guard() {
    for is_discarded in [false, true] {
        let mut bench = Bench::new(policy(3, 1), None);
        bench.member.guarded = true;
        bench.play("kxxx");
        assert!(bench.member.waits());
        let now = bench.now();
        if is_discarded {
            bench.member.discard(now.monotonic);
        }
        let ruling = Ruling {
            before: GuardState::Clear,
            state: GuardState::Clear,
            ratio: 0.0,
            waiting: 1,
            release: Some(now.monotonic),
            publish_partition: false,
            forgive: false,
            sample: Vec::new(),
            next_in: S(5),
        };
        let effect = bench.member.obey(&ruling, &bench.policy, now);
        let published = bench.member.published().map(|published| published.health);
        let expected = if is_discarded { Health::Ready } else { Health::Unreachable };
        assert_eq!((published, effect.is_none()), (Some(expected), is_discarded));
    }
}

/// rule:what-we-could-not-ask-changes-nothing
#[test]
fn an_extra_probe_that_could_not_ask_postpones_nothing() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let due = bench.member.due();
    bench.second = 5;
    bench.member.trigger(bench.now().monotonic);
    bench.play("v");
    assert_eq!(bench.member.due(), due);
}

/// The published state, defined by looking back over all results since the last change of target,
/// instead of by counting along.
fn published_by_definition(results: &[bool], failure: usize, success: usize) -> Vec<bool> {
    let mut published: Vec<bool> = Vec::new();
    for end in 1..=results.len() {
        let run = |value: bool, length: usize| {
            end >= length && results[end - length..end].iter().all(|&result| result == value)
        };
        published.push(match published.last() {
            None => results[0],
            Some(true) => !run(false, failure),
            Some(false) => run(true, success),
        });
    }
    published
}

proptest! {
    #[test]
    fn counting_along_agrees_with_looking_back(
        results in prop::collection::vec(any::<bool>(), 1..200),
        (failure, success) in (1..6_u32, 1..6_u32),
        kinds in "[xuc]{200}",
    ) {
        let probes: String = results.iter().zip(kinds.chars())
            .map(|(&ok, kind)| if ok { 'k' } else { kind }).collect();
        let mut bench = Bench::new(policy(failure, success), None);
        bench.play(&probes);
        let expected: String = published_by_definition(&results, failure as usize, success as usize)
            .into_iter().map(|ready| if ready { 'T' } else { 'F' }).collect();
        // The first result of all is published as it is, whatever the thresholds say.
        prop_assert_eq!(bench.ready, expected);
    }
}
