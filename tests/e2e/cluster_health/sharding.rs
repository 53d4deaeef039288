//! Two replicas of the product that share the members, of which one is stopped and one killed: a
//! short run of `scripts/bench-cluster-health --shards 2`, which sees every probe from the members'
//! side and judges what it saw; and such replicas in the place of a leader that probes all.

use std::process::Command;

use serde_json::Value;

/// Until the members of the killed replica are probed again: it is killed after 5 s, its claims end
/// within 34 s; members that stay without probes have waited longer than the 49 s that are allowed.
const LENGTH: &str = "--length=52";

/// In a run as short as these the members of a replica may all go to the one that takes its place.
const NO_MOVE: &str = "MISSED: no member ever moved";

/// The bench's report. No two replicas probed a member at once, none was left alone for too long,
/// nothing was published, and the token of the members is shown nowhere.
fn run(arguments: &[&str]) -> Value {
    let run =
        Command::new(env!("CARGO_BIN_EXE_bench-cluster-health")).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    let report: Value = serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|error| panic!("no report: {error}; {errors}"));
    let missed: Vec<_> = errors.lines().filter(|line| line.starts_with("MISSED")).collect();
    let is_well = run.status.success() || missed == [NO_MOVE];
    assert!(is_well, "{missed:#?} {report}");
    report
}

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[test]
fn two_real_replicas_share_the_members_while_they_stop_and_die() {
    let report = run(&["--shards=2", "--members=60", LENGTH]);
    assert!(report["blows"].as_u64().unwrap() >= 2, "{report}");
    assert!(report["unprobed_max_seconds"].as_f64().unwrap() > 10.0, "nobody waited: {report}");
}

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[test]
fn replicas_that_share_take_the_place_of_a_leader_that_probes_all_and_the_other_way_round() {
    let report = run(&["--shards=2", "--members=60", "--rolls=1"]);
    assert_eq!(report["blows"], 4, "{report}");
    assert!(report["moves"].as_u64().unwrap() > 0, "{report}");
}
