use super::*;

#[test]
fn a_health_is_read_back_from_what_it_publishes() {
    for health in Health::ALL {
        assert_eq!(Health::from_ready_reason(health.ready_reason()), Some(health));
        assert_eq!(Health::from_ready(health.ready()).ready(), health.ready());
    }
    assert_eq!(Health::from_ready_reason("KubeletReady"), None);
}

#[test]
fn every_health_has_both_conditions() {
    // (health, Ready, its reason, Offline, its reason)
    let rows = [
        (Health::Ready, "True", "ClusterReady", "False", "ClusterReachable"),
        (Health::NotReady, "False", "ClusterNotReady", "False", "ClusterReachable"),
        (Health::Unreachable, "False", "ClusterNotReachable", "True", "ClusterNotReachable"),
        (Health::Malformed, "False", "MalformedClusterConfig", "Unknown", "MalformedClusterConfig"),
        (Health::Unknown, "Unknown", "ClusterStatusUnknown", "Unknown", "ClusterStatusUnknown"),
        (Health::HeartbeatStopped, "Unknown", "HeartbeatStopped", "Unknown", "HeartbeatStopped"),
    ];
    for (health, ready, ready_reason, offline, offline_reason) in rows {
        assert_eq!((health.ready().as_str(), health.ready_reason()), (ready, ready_reason));
        let told = (health.offline().as_str(), health.offline_reason());
        assert_eq!(told, (offline, offline_reason));
    }
}

#[test]
fn causes_that_alternate_are_told_once_a_minute_at_most() {
    let (start, mut causes) = (Instant::now(), Causes::default());
    causes.begin(Some(1));
    let mut told =
        |second: u64, cause| causes.note(Some(cause), start + Duration::from_secs(second));
    let rows = [
        (10, 1, false),
        (20, 2, true),
        (30, 2, false),
        (40, 1, false),
        (79, 3, false),
        (80, 3, true),
        (90, 3, false),
        (140, 1, true),
    ];
    for (second, cause, expected) in rows {
        assert_eq!(told(second, cause), expected, "{second}");
    }
}

/// rule:a-restart-changes-nothing
#[test]
fn the_first_cause_after_a_takeover_is_no_other_one() {
    let (now, mut causes) = (Instant::now(), Causes::default());
    assert!(!causes.note(Some(1), now));
    assert!(causes.note(Some(2), now));
}
