//! A cluster that answers, and whose objects say that it is not well.

use std::sync::Arc;

use super::*;
use crate::{Check, CheckEvidence, CheckKind, Verdict, explain};

fn check(gates_ready: bool) -> Arc<Check> {
    Arc::new(Check {
        name: "NodesUp".into(),
        kind: CheckKind::NodesReady { min_ratio: 0.5 },
        interval: S(60),
        timeout: S(5),
        thresholds: Thresholds { failure: 3, success: 1 },
        gates_ready,
    })
}

fn bench(check: &Arc<Check>, published: Option<Published>) -> Bench {
    let mut bench = Bench::new(policy(3, 1), published);
    let now = bench.now();
    bench.member.follow_checks(std::slice::from_ref(check), now);
    bench
}

/// Runs of the check, one for each number of ready Nodes of four; 9 for no answer.
fn run(bench: &mut Bench, check: &Arc<Check>, ready: &[usize]) {
    let now = bench.now();
    for &ready in ready {
        let evidence = match ready {
            9 => CheckEvidence::Nothing("403".into()),
            ready => CheckEvidence::Nodes { ready, total: 4 },
        };
        bench.member.complete_check(check, &evidence, now);
    }
}

#[test]
fn a_failed_check_makes_a_cluster_not_ready_only_where_it_decides_and_never_offline() {
    for (gates, ready) in [(true, "TTTFFTT"), (false, "TTTTTTT")] {
        let check = check(gates);
        let mut bench = bench(&check, None);
        bench.play("k");
        run(&mut bench, &check, &[1]);
        bench.play("k");
        run(&mut bench, &check, &[1]);
        bench.play("k");
        run(&mut bench, &check, &[1]);
        bench.play("k");
        let message = explain(&bench.member, bench.now().monotonic);
        let told =
            message.ends_with("does not pass a check: check: NodesUp: 1 of 4 Nodes are ready");
        assert_eq!(told, gates, "{message}");
        bench.play("k");
        run(&mut bench, &check, &[3]);
        bench.play("k");
        run(&mut bench, &check, &[1, 9, 9, 9]);
        bench.play("k");
        assert_eq!((&*bench.ready, &*bench.offline), (ready, "FFFFFFF"), "{gates}");
    }
}

#[test]
fn a_cluster_with_a_failed_check_is_offline_after_as_many_lost_probes_as_any_other() {
    let check = check(true);
    let mut bench = bench(&check, None);
    run(&mut bench, &check, &[0, 0, 0]);
    bench.play("kxkxkxxxx");
    assert_eq!((&*bench.ready, &*bench.offline), ("FFFFFFFFF", "FFFFFFFTT"));
}

#[test]
fn another_cluster_at_another_place_does_not_inherit_a_failed_check() {
    let check = check(true);
    let mut bench = bench(&check, None);
    run(&mut bench, &check, &[0, 0, 0]);
    bench.play("k");
    let now = bench.now().monotonic;
    bench.member.retarget(now);
    assert!(bench.member.due_check(now).is_some(), "it is checked at once");
    run(&mut bench, &check, &[4]);
    bench.play("k");
    assert_eq!(bench.ready, "FT");
}

#[test]
fn the_results_that_a_cluster_waits_for_follow_each_other() {
    let since = wall(-100);
    let check = check(true);
    let mut bench = bench(&check, Some(Published::seed(Health::NotReady, since, since, None)));
    bench.play("k");
    let now = bench.now().monotonic;
    assert!(bench.member.due_check(now).is_some());
    bench.member.begin_check(&check.name, now);
    run(&mut bench, &check, &[9]);
    assert!(bench.member.due_check(now + S(10)).is_some());
}

#[test]
fn a_failed_check_counts_as_time_without_health() {
    let check = check(true);
    let mut bench = bench(&check, None);
    run(&mut bench, &check, &[0, 0, 0]);
    bench.play("kkkk");
    assert_eq!(bench.member.totals().bad, S(30));
    assert_eq!(bench.member.last().map(|it| it.finding.verdict()), Some(Verdict::Unhealthy));
    let evidence = bench.member.evidence().unwrap();
    assert!(evidence.answers, "the guard does not count it as silence");
}

/// rule:a-restart-changes-nothing
#[test]
fn a_cluster_that_was_not_ready_stays_so_until_its_checks_pass() {
    let since = wall(-100);
    let unready = Published::seed(Health::NotReady, since, since, None);
    let check = check(true);
    let mut bench = bench(&check, Some(unready.clone()));
    bench.play("kk");
    run(&mut bench, &check, &[1]);
    bench.play("k");
    run(&mut bench, &check, &[2]);
    bench.play("k");
    assert_eq!(bench.ready, "FFFT");
    // Before the checks are known.
    let member = Bench::new(policy(3, 1), Some(unready)).member;
    let report = Report { finding: finding('k'), ..bench.report('k') };
    assert_eq!(member.gated(report.clone(), false).finding.code(), Some(Code::Check));
    assert!(
        bench.member.gated(report.clone(), false).finding.is_ok(),
        "a ready cluster does not wait"
    );
    bench.play("xxx");
    assert_eq!(bench.member.published().unwrap().health.ready(), Status::False);
    assert!(bench.member.gated(report, false).finding.is_ok(), "it was ready in this process");
}

#[test]
fn checks_run_only_while_the_cluster_answers_with_ok() {
    let check = check(true);
    let mut bench = bench(&check, None);
    let due = |bench: &mut Bench| bench.member.due_check(bench.now().monotonic + S(60)).is_some();
    assert!(!due(&mut bench), "no probe yet");
    for (letter, expected) in [("k", true), ("x", false), ("u", false), ("k", true)] {
        bench.play(letter);
        assert_eq!(due(&mut bench), expected, "{letter}");
    }
    run(&mut bench, &check, &[0, 0, 0]);
    bench.play("k");
    assert_eq!(bench.member.last().unwrap().finding.code(), Some(Code::Check));
    let now = bench.now().monotonic;
    assert!(bench.member.due_check(now + S(120)).is_some());
}

#[test]
fn an_object_is_written_when_a_check_goes() {
    let check = check(false);
    let mut bench = bench(&check, None);
    bench.play("k");
    let (policy, now) = (bench.policy, bench.now());
    bench.member.handed_over(7, now.monotonic);
    assert_eq!(bench.member.write_due(7, &policy, now.monotonic), None);
    assert!(bench.member.follow_checks(&[], now));
    assert_eq!(bench.member.write_due(7, &policy, now.monotonic), Some(Urgency::Change));
}
