//! Two replicas of the product that share the members, of which one is stopped and one killed: a short
//! run of `scripts/bench-cluster-health --shards 2`, which sees every probe from the members' side. How
//! long a member waits is judged by the long run, on a machine that does nothing else.

use std::process::Command;

use serde_json::Value;

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[test]
fn two_real_replicas_share_the_members_while_they_stop_and_die() {
    let run = Command::new(env!("CARGO_BIN_EXE_bench-cluster-health"))
        .args(["--shards=2", "--members=60", "--length=14"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    let report: Value = serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|error| panic!("no report: {error}; {errors}"));
    assert_eq!(report["probed_by_two_at_once"], 0, "{report}");
    assert_eq!((&report["blows"], &report["ready"]), (&2.into(), &60.into()), "{report}");
}
