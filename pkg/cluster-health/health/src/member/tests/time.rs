//! Effects of time: silence, extra probes, changed periods.

use super::*;

/// rule:unwatched-clusters-become-unknown
#[test]
fn a_cluster_that_nobody_probes_becomes_unknown_in_time_and_keeps_its_probe_time() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let completed = bench.start + S(1);
    assert_eq!(bench.member.stale_at(&bench.policy), Some(completed + S(40)));
    let at = |second: u64| Moment { monotonic: completed + S(second), wall: wall(41) };
    assert_eq!(bench.member.clone().sweep(&bench.policy, at(39)), None);
    let effect = bench.member.sweep(&bench.policy, at(40)).unwrap();
    let from = Some(Status::True);
    assert_eq!(effect.change, Change::Ready { from, to: Status::Unknown });
    let published = bench.member.published().unwrap();
    assert_eq!((published.probed, published.ready.since), (Some(wall(0)), wall(41)));
    assert_eq!(bench.member.sweep(&bench.policy, at(4000)), None);

    let mut fresh = Bench::new(policy(3, 1), None);
    let at = |second: u64| Moment { monotonic: fresh.start + S(second), wall: wall(0) };
    let (before, after) = (at(59), at(60));
    assert_eq!(fresh.member.sweep(&fresh.policy, before), None);
    assert!(fresh.member.sweep(&fresh.policy, after).is_some());
    assert_eq!(fresh.member.published().unwrap().probed, None);
}

#[test]
fn failures_of_extra_probes_count_only_half_a_confirm_interval_apart() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let mut fail_at = |second: u64, triggered: bool| {
        bench.second = second;
        if triggered {
            bench.member.trigger(bench.now().monotonic);
        }
        bench.step('x');
        (bench.member.failures(), bench.member.due().unwrap() - bench.start)
    };
    // A failure that counts puts the next regular probe a confirm interval later; others do not.
    let rows = [(10, false), (11, true), (14, true), (15, true), (19, true), (25, false)];
    let counted = rows.map(|(second, triggered)| fail_at(second, triggered));
    let expected = [(1, 20), (1, 20), (1, 20), (2, 25), (2, 25), (3, 35)];
    assert_eq!(counted, expected.map(|(failures, due)| (failures, S(due))));
    assert_eq!(bench.ready.find('F'), Some(6));
}

#[test]
fn a_run_that_contradicts_what_is_published_is_confirmed_sooner() {
    let slow = Cadence { period: S(300), timeout: S(5), confirm: S(10), jitter: 0.0 };
    let mut bench = Bench::new(Policy { cadence: slow, ..policy(3, 2) }, None);
    let mut waits = Vec::new();
    for letter in "kxxxxkk".chars() {
        bench.step(letter);
        let due = bench.member.due().unwrap() - bench.start;
        waits.push(due.as_secs() + 10 - bench.second);
        bench.second = due.as_secs();
    }
    assert_eq!(waits, [300, 10, 10, 300, 300, 10, 300]);
}

/// rule:stuck-tasks-are-replaced
#[test]
fn a_task_without_a_completed_probe_is_stuck_after_two_rounds() {
    let mut bench = Bench::new(policy(3, 1), None);
    assert_eq!(bench.member.stuck_at(&bench.policy), bench.start + S(25));
    bench.play("k");
    bench.member.begin(bench.start + S(10));
    assert_eq!(bench.member.stuck_at(&bench.policy), bench.start + S(1 + 25));
    bench.member.restart(bench.start + S(26));
    assert_eq!(bench.member.stuck_at(&bench.policy), bench.start + S(26 + 25));
    assert!(bench.member.due().unwrap() <= bench.start + S(26));
}

#[test]
fn a_shorter_period_does_not_wait_for_the_end_of_a_longer_one() {
    let slow = Cadence { period: S(300), timeout: S(5), confirm: S(10), jitter: 0.0 };
    let mut bench = Bench::new(Policy { cadence: slow, ..policy(3, 1) }, None);
    bench.play("k");
    assert_eq!(bench.member.due(), Some(bench.start + S(300)));
    let before = bench.policy;
    bench.member.follow(&before, &policy(3, 1), bench.start + S(4));
    assert_eq!(bench.member.due(), Some(bench.start + S(10)));
    bench.member.follow(&before, &policy(3, 1), bench.start + S(50));
    assert_eq!(bench.member.due(), Some(bench.start + S(10)));
}

#[test]
fn a_shorter_period_calls_nobody_unknown_or_stuck_and_spreads_those_that_are_due() {
    let slow = Cadence { period: S(300), timeout: S(5), confirm: S(10), jitter: 0.0 };
    let (before, after) = (Policy { cadence: slow, ..policy(3, 1) }, policy(3, 1));
    let mut tenths = [0_u32; 10];
    for number in 0..1000 {
        let mut bench = Bench::new(before, None);
        bench.member.hash = crate::hash(&format!("uid-{number}"));
        bench.play("k");
        let now = bench.start + S(200);
        bench.member.follow(&before, &after, now);
        assert_eq!(bench.member.stale_at(&after), Some(now + S(40)));
        assert_eq!(bench.member.stuck_at(&after), now + S(25));
        let wait = bench.member.due().unwrap() - now;
        tenths[usize::try_from(wait.as_secs()).unwrap()] += 1;
    }
    assert!(tenths.iter().all(|count| (60..140).contains(count)), "{tenths:?}");
}

#[test]
fn a_policy_with_the_same_limits_excuses_no_silence() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let before = bench.policy;
    bench.member.follow(&before, &policy(5, 2), bench.start + S(30));
    assert_eq!(bench.member.stale_at(&before), Some(bench.start + S(1) + S(40)));
}

#[test]
fn time_of_which_a_probe_says_nothing_is_not_observed() {
    // (script, guarded; observed and bad seconds)
    let rows = [
        ("kkxk", false, 30, 10),
        // The process had no socket.
        ("kkvkk", false, 20, 0),
        // From the third failure on it waits for the guard, which says that they are real (r) or ours (f).
        ("kxxxrxkk", true, 60, 40),
        ("kxxxxrxkk", true, 70, 50),
        ("kxxxfkk", true, 20, 0),
        ("kxxxxkk", true, 20, 0),
        // It answered before it waited, or the failures were ours before.
        ("kxxkk", true, 40, 20),
        ("kxxfkk", true, 20, 0),
        // It answered (a) before it waited, while the guard suspects our network.
        ("kxxak", true, 20, 0),
        ("kuuak", true, 40, 20),
        ("kuuukk", true, 50, 30),
        ("kxxxxkk", false, 60, 40),
        ("kpkk", false, 10, 0),
    ];
    for (script, guarded, observed, bad) in rows {
        let mut bench = Bench::new(policy(3, 1), None);
        let arrival = Arrival { guarded, ..Arrival::default() };
        bench.member = Member::new(arrival, &bench.policy, bench.start);
        for letter in script.chars() {
            let now = bench.now();
            match letter {
                'p' => {
                    bench.member.pause();
                    bench.member.resume(now.monotonic);
                }
                'r' | 'f' => {
                    let ruling = crate::Ruling {
                        before: crate::GuardState::Suspect,
                        state: crate::GuardState::Clear,
                        ratio: 0.0,
                        waiting: 1,
                        release: (letter == 'r').then_some(now.monotonic),
                        publish_partition: false,
                        forgive: letter == 'f',
                        sample: Vec::new(),
                        next_in: S(5),
                    };
                    bench.member.obey(&ruling, &policy(3, 1), now);
                }
                'a' => {
                    bench.member.excuse(&bench.report('k'));
                    bench.step('k');
                }
                letter => drop(bench.step(letter)),
            }
        }
        let sums = crate::Sums { observed: S(observed), bad: S(bad) };
        assert_eq!(bench.member.totals(), sums, "{script}");
        assert_eq!(bench.member.sums(bench.now().wall), sums, "{script}");
    }
}
