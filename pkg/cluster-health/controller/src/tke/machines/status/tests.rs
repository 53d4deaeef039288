use super::*;
use crate::tke::testing::machine;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The states of a Machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Well,
    NodeNotReady,
    Missing,
    Unknown(UnknownReason),
}

fn published(state: State) -> PublishedMachine {
    let (health, code, unknown) = match state {
        State::Well => (Health::Ready, None, None),
        State::NodeNotReady => (Health::NotReady, Some(Code::NodeNotReady), None),
        State::Missing => (Health::NotReady, Some(Code::NodeMissing), None),
        State::Unknown(reason) => (Health::Unknown, None, Some(reason)),
    };
    let health = Published {
        finding: code.map(|code| Finding::failed(code, ProbePath::default())),
        detail: Some("told".into()),
        ..Published::seed(health, second(10), second(10), Some(second(20)))
    };
    PublishedMachine { health, unknown, info: None }
}

fn fields(machine: &Object<Machine>, published: &PublishedMachine) -> Value {
    Written::new(machine, published).fields(machine)
}

#[test]
fn each_health_writes_its_phase_reason_and_condition() {
    let running = machine(|_| {});
    let failed = machine(|object| {
        object["status"] = json!({"phase": "Failed", "reason": "Old", "message": "old"});
    });
    // (object, health, phase, reason, message, status and reason of the condition)
    let rows = [
        (&running, State::Well, "Running", "", "", "True", None),
        (&failed, State::Well, "Running", "", "", "True", None),
        (
            &running,
            State::NodeNotReady,
            "Failed",
            "NodeNotReady",
            "told",
            "False",
            Some("NodeNotReady"),
        ),
        (
            &running,
            State::Missing,
            "Failed",
            "HealthCheckFail",
            "told",
            "False",
            Some("HealthCheckFail"),
        ),
        (
            &running,
            State::Unknown(UnknownReason::ClusterUnhealthy),
            "Running",
            "",
            "",
            "Unknown",
            Some("ClusterUnhealthy"),
        ),
        (
            &failed,
            State::Unknown(UnknownReason::ClusterUnhealthy),
            "Failed",
            "Old",
            "old",
            "Unknown",
            Some("ClusterUnhealthy"),
        ),
        (
            &failed,
            State::Unknown(UnknownReason::Locked),
            "Failed",
            "Old",
            "old",
            "Unknown",
            Some("MachineLocked"),
        ),
        (
            &running,
            State::Unknown(UnknownReason::NodesNotListed),
            "Running",
            "",
            "",
            "Unknown",
            Some("NodesNotListed"),
        ),
    ];
    for (machine, state, phase, reason, message, status, why) in rows {
        let condition = json!({
            "type": "HealthCheck", "status": status, "reason": why.unwrap_or_default(), "message": "told",
            "lastProbeTime": "1970-01-01T00:00:20Z", "lastTransitionTime": "1970-01-01T00:00:10Z",
        });
        let expected = json!({
            "metadata": {"resourceVersion": "7"},
            "status": {"phase": phase, "reason": reason, "message": message, "conditions": [condition]},
        });
        assert_eq!(fields(machine, &published(state)), expected, "{state:?}");
    }
}

#[test]
fn what_a_node_says_of_itself_is_written_and_kept_while_it_says_nothing() {
    let known = machine(|object| {
        object["status"]["machineInfo"] = json!({"kubeletVersion": "v1.35.0"});
    });
    let unheard = fields(&known, &published(State::Missing));
    assert_eq!(unheard["status"]["machineInfo"]["kubeletVersion"], "v1.35.0");
    let mut told = published(State::Well);
    told.info = Some(MachineInfo { kubelet_version: "v1.36.3".into(), ..MachineInfo::default() });
    let heard = fields(&known, &told);
    assert_eq!(heard["status"]["machineInfo"]["kubeletVersion"], "v1.36.3");
}

#[test]
fn times_and_messages_alone_are_not_worth_a_write() {
    let machine = machine(|_| {});
    let fingerprint =
        |published: &PublishedMachine| Written::new(&machine, published).fingerprint();
    let one = published(State::NodeNotReady);
    let mut later = one.clone();
    (later.health.detail, later.health.probed) = (Some("another".into()), None);
    later.health.ready.since = second(9);
    assert_eq!(fingerprint(&one), fingerprint(&later));
    for other in [
        published(State::Missing),
        published(State::Well),
        PublishedMachine { info: Some(MachineInfo::default()), ..one.clone() },
    ] {
        assert_ne!(fingerprint(&one), fingerprint(&other), "{other:?}");
    }
}

#[test]
fn what_was_written_is_read_back_after_a_restart_and_is_not_written_again() {
    for state in [
        State::Well,
        State::NodeNotReady,
        State::Missing,
        State::Unknown(UnknownReason::ClusterUnhealthy),
        State::Unknown(UnknownReason::ClusterNotFound),
        State::Unknown(UnknownReason::NodesNotListed),
        State::Unknown(UnknownReason::Locked),
    ] {
        let before = machine(|_| {});
        let written = published(state);
        let stored = machine(|object| {
            object["status"] = fields(&before, &written)["status"].clone();
        });
        let read = seed(&stored, second(100)).unwrap();
        assert_eq!((read.status(), read.reason()), (written.status(), written.reason()));
        let times = (read.health.ready.since, read.health.probed);
        assert_eq!(times, (second(10), Some(second(20))));
        let shown = Written::shown(&stored).fingerprint();
        assert_eq!(Written::new(&stored, &read).fingerprint(), shown, "{state:?}");
    }
    let unknown = machine(|object| {
        object["status"]["conditions"] = json!([{"type": "HealthCheck", "status": "Unknown"}]);
    });
    assert_eq!(seed(&unknown, second(100)), None);
}

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
