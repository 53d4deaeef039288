//! Two replicas of the product that share the members, each frozen, stopped and killed in turn: a short
//! run of `scripts/bench-cluster-health --shards 2`, which sees every probe from the members' side.

use std::process::Command;

use serde_json::Value;

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[test]
fn two_real_replicas_share_the_members_while_they_freeze_stop_and_die() {
    let run = Command::new(env!("CARGO_BIN_EXE_bench-cluster-health"))
        .args(["--shards=2", "--members=60", "--length=48"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["probed_by_two_at_once"], 0, "{report}");
    assert_eq!((&report["transitions"], &report["ready"]), (&0.into(), &60.into()), "{report}");
}
