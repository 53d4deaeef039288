//! Two replicas of the product that share the members, of which one is stopped, one killed and one frozen: a
//! run of `scripts/bench-cluster-health --shards 2`, which sees every probe from the members'
//! side and judges what it saw; and such replicas in the place of a leader that probes all.

use std::process::Command;

use serde_json::Value;

/// Each blow once, the last two of which outlast a claim of 30 s: a replica is stopped, the other one is killed after
/// 5 s, and the first one is frozen after 53 s.
const LENGTH: &str = "--length=90";

/// Its report, after its verdict: no member is probed by two replicas at once or left alone for longer than it takes
/// to call it unknown, nothing is published, and the token of the members is shown nowhere.
fn run(arguments: &[&str]) -> Value {
    let run =
        Command::new(env!("CARGO_BIN_EXE_bench-cluster-health")).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    let report: Value = serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|error| panic!("no report: {error}; {errors}"));
    let missed: Vec<_> = errors.lines().filter(|line| line.starts_with("MISSED")).collect();
    assert!(run.status.success(), "{missed:#?} {report}");
    report
}

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[test]
fn two_real_replicas_share_the_members_while_they_stop_die_and_freeze() {
    let report = run(&["--shards=2", "--members=60", LENGTH]);
    assert_eq!((&report["blows"], &report["ready"]), (&3.into(), &60.into()), "{report}");
    assert!(report["unprobed_max_seconds"].as_f64().unwrap() > 10.0, "nobody waited: {report}");
}

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[test]
fn replicas_that_share_take_the_place_of_a_leader_that_probes_all_and_the_other_way_round() {
    let report = run(&["--shards=2", "--members=60", "--rolls=1"]);
    assert_eq!(report["blows"], 4, "{report}");
}
