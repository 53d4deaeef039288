use super::*;
use crate::tke::testing::machine;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn published(standing: Standing) -> Published {
    Published {
        standing,
        message: "told".to_owned(),
        since: second(10),
        probed: Some(second(20)),
        info: None,
    }
}

fn fields(machine: &Object<Machine>, published: &Published) -> Value {
    Written::new(machine, published).fields(machine)
}

#[test]
fn each_standing_writes_its_phase_reason_and_condition() {
    let running = machine(|_| {});
    let failed = machine(|object| {
        object["status"] = json!({"phase": "Failed", "reason": "Old", "message": "old"});
    });
    // (object, standing, phase, reason, message, status and reason of the condition)
    let rows = [
        (&running, Standing::Well, "Running", "", "", "True", None),
        (&failed, Standing::Well, "Running", "", "", "True", None),
        (
            &running,
            Standing::NodeNotReady,
            "Failed",
            "NodeNotReady",
            "told",
            "False",
            Some("NodeNotReady"),
        ),
        (
            &running,
            Standing::Missing,
            "Failed",
            "HealthCheckFail",
            "told",
            "False",
            Some("HealthCheckFail"),
        ),
        (
            &running,
            Standing::Unknown(Cause::ClusterUnhealthy),
            "Running",
            "",
            "",
            "Unknown",
            Some("ClusterUnhealthy"),
        ),
        (
            &failed,
            Standing::Unknown(Cause::ClusterUnhealthy),
            "Failed",
            "Old",
            "old",
            "Unknown",
            Some("ClusterUnhealthy"),
        ),
        (
            &failed,
            Standing::Unknown(Cause::Locked),
            "Failed",
            "Old",
            "old",
            "Unknown",
            Some("MachineLocked"),
        ),
        (
            &running,
            Standing::Unknown(Cause::NodesNotListed),
            "Running",
            "",
            "",
            "Unknown",
            Some("NodesNotListed"),
        ),
    ];
    for (machine, standing, phase, reason, message, status, why) in rows {
        let condition = json!({
            "type": "HealthCheck", "status": status, "reason": why.unwrap_or_default(), "message": "told",
            "lastProbeTime": "1970-01-01T00:00:20Z", "lastTransitionTime": "1970-01-01T00:00:10Z",
        });
        let expected = json!({
            "metadata": {"resourceVersion": "7"},
            "status": {"phase": phase, "reason": reason, "message": message, "conditions": [condition]},
        });
        assert_eq!(fields(machine, &published(standing)), expected, "{standing:?}");
    }
}

#[test]
fn what_a_node_says_of_itself_is_written_and_kept_while_it_says_nothing() {
    let known = machine(|object| {
        object["status"]["machineInfo"] = json!({"kubeletVersion": "v1.35.0"});
    });
    let unheard = fields(&known, &published(Standing::Missing));
    assert_eq!(unheard["status"]["machineInfo"]["kubeletVersion"], "v1.35.0");
    let mut told = published(Standing::Well);
    told.info = Some(MachineInfo { kubelet_version: "v1.36.3".into(), ..MachineInfo::default() });
    let heard = fields(&known, &told);
    assert_eq!(heard["status"]["machineInfo"]["kubeletVersion"], "v1.36.3");
}

#[test]
fn times_and_messages_alone_are_not_worth_a_write() {
    let machine = machine(|_| {});
    let fingerprint = |published: &Published| Written::new(&machine, published).fingerprint();
    let one = published(Standing::NodeNotReady);
    let later =
        Published { message: "another".into(), probed: None, since: second(9), ..one.clone() };
    assert_eq!(fingerprint(&one), fingerprint(&later));
    for other in [
        published(Standing::Missing),
        published(Standing::Well),
        Published { info: Some(MachineInfo::default()), ..one.clone() },
    ] {
        assert_ne!(fingerprint(&one), fingerprint(&other), "{other:?}");
    }
}

/// rule:machines-fail-as-clusters-do
#[test]
fn what_was_written_is_read_back_after_a_restart_and_is_not_written_again() {
    for standing in [
        Standing::Well,
        Standing::NodeNotReady,
        Standing::Missing,
        Standing::Unknown(Cause::ClusterUnhealthy),
        Standing::Unknown(Cause::ClusterNotFound),
        Standing::Unknown(Cause::NodesNotListed),
        Standing::Unknown(Cause::Locked),
    ] {
        let before = machine(|_| {});
        let written = published(standing);
        let stored = machine(|object| {
            object["status"] = fields(&before, &written)["status"].clone();
        });
        let read = seed(&stored, second(100)).unwrap();
        assert_eq!(
            (read.standing, read.since, read.probed),
            (standing, second(10), Some(second(20)))
        );
        let shown = Written::shown(&stored).fingerprint();
        assert_eq!(Written::new(&stored, &read).fingerprint(), shown, "{standing:?}");
    }
    let unknown = machine(|object| {
        object["status"]["conditions"] = json!([{"type": "HealthCheck", "status": "Unknown"}]);
    });
    assert_eq!(seed(&unknown, second(100)), None);
}

/// rule:only-live-machines
#[test]
fn machines_that_others_set_up_upgrade_or_take_away_are_left_alone() {
    for (phase, live) in [
        ("Running", true),
        ("Failed", true),
        ("", false),
        ("Initializing", false),
        ("Upgrading", false),
        ("Terminating", false),
        ("SomethingNew", false),
    ] {
        let mut machine = machine(|object| object["status"]["phase"] = phase.into());
        assert_eq!(is_live(&machine), live, "{phase}");
        machine.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
        assert!(!is_live(&machine), "deleted {phase}");
    }
}
