//! Conditions as they are written and as they are read back.

use health::Condition as Held;

use super::*;

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn published(health: Health) -> Published {
    let published = Published::seed(health, time(100), time(200), Some(time(300)));
    Published {
        ready: Held { status: health.ready(), since: time(100) },
        offline: Held { status: health.offline(), since: time(200) },
        ..published
    }
}

#[test]
fn both_conditions_are_written_with_the_reasons_and_words_of_upstream() {
    // (health; Ready; Offline, its reason and message)
    let rows = [
        (
            Health::Ready,
            "True",
            "ClusterReady",
            "False",
            "ClusterReachable",
            "cluster is reachable",
        ),
        (
            Health::NotReady,
            "False",
            "ClusterNotReady",
            "False",
            "ClusterReachable",
            "cluster is reachable",
        ),
        (
            Health::Unreachable,
            "False",
            "ClusterNotReachable",
            "True",
            "ClusterNotReachable",
            "cluster is not reachable",
        ),
        (
            Health::Malformed,
            "False",
            "MalformedClusterConfig",
            "Unknown",
            "MalformedClusterConfig",
            "words",
        ),
        (
            Health::Unknown,
            "Unknown",
            "ClusterStatusUnknown",
            "Unknown",
            "ClusterStatusUnknown",
            "words",
        ),
    ];
    for (health, ready, ready_reason, offline, offline_reason, message) in rows {
        let held = KubeFedClusterStatus::default();
        let written = fields(&published(health), "words", &held);
        let expected = json!({"status": {"conditions": [
            {
                "type": "Ready", "status": ready, "reason": ready_reason, "message": "words",
                "lastProbeTime": "1970-01-01T00:05:00Z",
                "lastTransitionTime": "1970-01-01T00:01:40Z",
            },
            {
                "type": "Offline", "status": offline, "reason": offline_reason,
                "message": message,
                "lastProbeTime": "1970-01-01T00:05:00Z",
                "lastTransitionTime": "1970-01-01T00:03:20Z",
            },
        ]}});
        assert_eq!(written, expected);
    }
}

#[test]
fn zones_and_region_that_are_known_stay() {
    let zones = vec!["a".to_owned()];
    let held =
        KubeFedClusterStatus { zones, region: Some("r".into()), ..KubeFedClusterStatus::default() };
    let written = fields(&published(Health::Ready), "", &held);
    assert_eq!(
        (&written["status"]["zones"], &written["status"]["region"]),
        (&json!(["a"]), &json!("r"))
    );
}

#[test]
fn what_is_written_is_read_back_as_the_same() {
    for health in Health::ALL {
        let published = published(health);
        let written = fields(&published, "words", &KubeFedClusterStatus::default());
        let status: KubeFedClusterStatus =
            serde_json::from_value(written["status"].clone()).unwrap();
        assert_eq!(seed(&status, time(1000)), Some(published));
        assert!(is_whole(&status));
    }
}

#[test]
fn what_upstream_wrote_is_understood() {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason,
               "lastProbeTime": "1970-01-01T00:05:00Z",
               "lastTransitionTime": "1970-01-01T00:01:40Z"})
    };
    let rows = [
        (json!([condition("Ready", "True", "ClusterReady")]), Some(Health::Ready)),
        (json!([condition("Offline", "True", "ClusterNotReachable")]), Some(Health::Unreachable)),
        (json!([condition("Offline", "False", "ClusterReachable")]), None),
        (
            json!([
                condition("Ready", "False", "ClusterNotReady"),
                condition("Offline", "False", "ClusterReachable"),
            ]),
            Some(Health::NotReady),
        ),
        (
            json!([condition("Ready", "False", ""), condition("Offline", "True", "")]),
            Some(Health::Unreachable),
        ),
        (json!([condition("Ready", "True", "ClusterNotReady")]), Some(Health::Ready)),
        (json!([condition("Ready", "perhaps", "")]), None),
        (json!([]), None),
    ];
    for (conditions, health) in rows {
        let status: KubeFedClusterStatus =
            serde_json::from_value(json!({"conditions": conditions})).unwrap();
        let seeded = seed(&status, time(1000)).map(|seeded| seeded.health);
        assert_eq!(seeded, health, "{conditions}");
    }
}

#[test]
fn times_of_a_clock_that_is_ahead_are_not_taken_over() {
    let written = fields(&published(Health::Ready), "", &KubeFedClusterStatus::default());
    let status: KubeFedClusterStatus = serde_json::from_value(written["status"].clone()).unwrap();
    let seeded = seed(&status, time(50)).unwrap();
    assert_eq!((seeded.ready.since, seeded.probed), (time(50), Some(time(50))));
}

#[test]
fn the_fingerprint_follows_what_matters() {
    let held = KubeFedClusterStatus::default();
    let zoned = KubeFedClusterStatus { zones: vec!["a".into()], ..held.clone() };
    let all: Vec<_> = Health::ALL.iter().map(|&it| fingerprint(it, &held)).collect();
    let distinct: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert_ne!(fingerprint(Health::Ready, &zoned), fingerprint(Health::Ready, &held));
}

#[test]
fn failed_checks_stand_in_the_message_once() {
    let check = |name: &str, status| CheckReport {
        name: name.into(),
        status,
        message: "gone".into(),
        since: time(0),
        probed: None,
    };
    let (failed, passed) = (Some(CheckStatus::Failed), Some(CheckStatus::Passed));
    let checks = [check("A", failed), check("B", passed), check("C", None), check("D", failed)];
    assert_eq!(with_checks("ok", &checks), "ok; failed checks: A: gone, D: gone");
    assert_eq!(with_checks("check: A: gone", &checks), "check: A: gone; failed checks: D: gone");
    assert_eq!(with_checks("ok", &checks[1..3]), "ok");
}
