use health::{Code, Finding, Health, ProbePath, Status};

use super::*;
use crate::engine::now;
use crate::shared_conditions::{WITHIN_OBJECTIVE, fingerprint, record};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn published(health: Health) -> Published {
    let (ready, offline) = (time("2026-11-21T12:00:00Z"), time("2026-11-21T12:01:00Z"));
    Published::seed(health, ready, offline, Some(time("2026-11-21T12:30:00Z")))
}

fn says(message: &str) -> Statement<'_> {
    Statement { message, ..Statement::new(None, now()) }
}

fn fields(
    published: &Published,
    statement: &Statement<'_>,
    manager: &OfManager,
    stored: &ClusterProfileStatus,
) -> Value {
    json!({ "status": super::fields(published, statement, manager, stored) })
}

fn shown(status: &ClusterProfileStatus, manager: &OfManager) -> Option<u64> {
    shared_conditions::shown(&status.conditions, manager)
}

fn status_of(fields: &Value) -> ClusterProfileStatus {
    serde_json::from_value(fields["status"].clone()).unwrap()
}

fn ours(version: &str) -> OfManager {
    OfManager { is_ours: true, version: Some(version.to_owned()) }
}

#[test]
fn the_golden_status_of_a_cluster_that_is_not_reachable() {
    let mut published = published(Health::Unreachable);
    published.finding = Some(Finding::failed(Code::Timeout, ProbePath::Readyz));
    let fields = fields(
        &published,
        &says("timeout"),
        &OfManager::default(),
        &ClusterProfileStatus::default(),
    );
    let expected = json!({"status": {
        "conditions": [
            {
                "type": "infra-controller-manager/Healthy", "status": "False",
                "reason": "ClusterNotReachable", "lastTransitionTime": "2026-11-21T12:00:00Z",
                "message": "timeout; probed 2026-11-21T12:30:00Z",
            },
            {
                "type": "infra-controller-manager/Reachable", "status": "False",
                "reason": "ClusterNotReachable", "lastTransitionTime": "2026-11-21T12:01:00Z",
                "message": "the cluster is not reachable; probed 2026-11-21T12:30:00Z",
            },
        ],
        "properties": [{
            "name": "infra-controller-manager/probe", "value": "timeout",
            "lastObservedTime": "2026-11-21T12:30:00Z",
        }],
    }});
    assert_eq!(fields, expected);
}

#[test]
fn the_condition_of_the_control_plane_and_the_version_are_written_for_our_managers_only() {
    let stored = ClusterProfileStatus::default();
    let written = fields(&published(Health::Ready), &says("ok"), &ours("v1.33.0"), &stored);
    let control_plane = &written["status"]["conditions"][2];
    assert_eq!(
        (&control_plane["type"], &control_plane["status"]),
        (&json!(CONTROL_PLANE), &json!("True"))
    );
    assert_eq!(written["status"]["version"], json!({"kubernetes": "v1.33.0"}));
    let foreign = OfManager { is_ours: false, version: Some("v1.33.0".to_owned()) };
    let written = fields(&published(Health::Ready), &says("ok"), &foreign, &stored);
    assert_eq!(written["status"]["conditions"].as_array().unwrap().len(), 2);
    assert!(written["status"].get("version").is_none());
}

/// rule:a-restart-changes-nothing
#[test]
fn what_is_written_is_read_back_and_has_the_same_fingerprint() {
    let now = time("2026-11-21T13:00:00Z");
    for health in Health::ALL {
        for manager in [OfManager::default(), ours("v1.33.0")] {
            let mut before = published(health);
            before.finding = Some(Finding::ok(ProbePath::Readyz));
            let fields = fields(&before, &says("m"), &manager, &ClusterProfileStatus::default());
            let status = status_of(&fields);
            let after = seed(&status, now).unwrap();
            assert_eq!(after, published(health));
            assert_eq!(shown(&status, &manager), Some(fingerprint(Some(health), &manager)));
            assert!(has_ours(&status));
        }
    }
}

#[test]
fn a_status_that_lacks_something_of_ours_has_no_fingerprint() {
    let manager = ours("v1.33.0");
    let whole =
        fields(&published(Health::Ready), &says("m"), &manager, &ClusterProfileStatus::default());
    for at in 0..2 {
        let mut less = whole.clone();
        less["status"]["conditions"].as_array_mut().unwrap().remove(at);
        assert_eq!(shown(&status_of(&less), &manager), None, "{less}");
    }
    let mut other = whole.clone();
    other["status"]["conditions"][1]["status"] = "Unknown".into();
    assert_ne!(shown(&status_of(&other), &manager), shown(&status_of(&whole), &manager));
    let mut theirs = whole.clone();
    theirs["status"]["conditions"][2]["status"] = "False".into();
    theirs["status"]["version"]["kubernetes"] = "v1.0.0".into();
    let same = shown(&status_of(&whole), &manager);
    assert_eq!(shown(&status_of(&theirs), &manager), same, "another manager may own them");
    let newer = ours("v1.34.0");
    assert_ne!(
        fingerprint(Some(Health::Ready), &manager),
        fingerprint(Some(Health::Ready), &newer)
    );
    let foreign = json!({"status": {"conditions": [{"type": CONTROL_PLANE, "status": "True"}]}});
    assert!(seed(&status_of(&foreign), Timestamp::now()).is_none());
    assert!(!has_ours(&status_of(&foreign)));
}

#[test]
fn the_last_property_stays_while_this_process_has_no_finding_of_its_own() {
    let known = json!({"name": PROBE, "value": "dns", "lastObservedTime": "2026-11-20T00:00:00Z"});
    let stored =
        status_of(&json!({"status": {"properties": [known, {"name": "a", "value": "b"}]}}));
    let written = fields(&published(Health::Unknown), &says("m"), &OfManager::default(), &stored);
    assert_eq!(written["status"]["properties"], json!([known]));
}

/// rule:a-record-costs-no-write
#[test]
fn the_condition_about_the_objective_keeps_the_record_and_changes_no_fingerprint() {
    let manager = OfManager::default();
    let within = |status, message: &str| health::WithinObjective {
        status,
        reason: "BudgetLeft",
        message: format!("healthy; record {message}"),
    };
    let (first, more, spent) = (
        within(Status::True, "v1.1.a"),
        within(Status::True, "v1.2.b"),
        within(Status::False, "v1.3.c"),
    );
    let written = |within, stored: &ClusterProfileStatus| {
        let statement = Statement { within: Some(within), ..says("ok") };
        status_of(&fields(&published(Health::Ready), &statement, &manager, stored))
    };
    let since = |status: &ClusterProfileStatus| {
        Condition::find(&status.conditions, WITHIN_OBJECTIVE).unwrap().last_transition_time
    };
    let mut stored = written(&first, &ClusterProfileStatus::default());
    assert_eq!(record(&stored.conditions), Some("v1.1.a"));
    let long_ago = Some(time("2026-11-01T00:00:00Z"));
    for condition in &mut stored.conditions {
        condition.last_transition_time = long_ago;
    }
    let later = written(&more, &stored);
    assert_eq!((record(&later.conditions), since(&later)), (Some("v1.2.b"), long_ago));
    assert_eq!(shown(&later, &manager), Some(fingerprint(Some(Health::Ready), &manager)));
    assert!(since(&written(&spent, &stored)) > long_ago, "the status has changed");
    assert_eq!(record(&ClusterProfileStatus::default().conditions), None);
}

/// rule:a-restart-changes-nothing
#[test]
fn a_check_has_a_condition_of_its_own_and_that_of_the_object_stays_until_there_is_a_result() {
    let check = |status| health::CheckReport {
        name: "DNS".into(),
        status,
        message: "it is there".into(),
        since: time("2026-11-21T12:20:00Z"),
        probed: Some(time("2026-11-21T12:25:00Z")),
    };
    let written = |status, stored: &ClusterProfileStatus| {
        let statement = Statement { checks: Some(&[check(status)]), ..says("ok") };
        status_of(&fields(&published(Health::Ready), &statement, &OfManager::default(), stored))
    };
    let kind = "infra-controller-manager/DNS";
    let none = ClusterProfileStatus::default();
    assert_eq!(Condition::find(&written(None, &none).conditions, kind), None);
    let failed = written(Some(health::CheckStatus::Failed), &none);
    let expected = json!({
        "type": kind, "status": "False", "reason": "CheckFailed",
        "lastTransitionTime": "2026-11-21T12:20:00Z",
        "message": "it is there; probed 2026-11-21T12:25:00Z",
    });
    assert_eq!(json!(Condition::find(&failed.conditions, kind)), expected);
    assert_eq!(shared_conditions::stored_check(&failed.conditions, "DNS"), Some(Status::False));
    assert_eq!(written(None, &failed).conditions, failed.conditions);
    let mut older = failed.clone();
    let long_ago = Some(time("2026-11-01T00:00:00Z"));
    for condition in &mut older.conditions {
        condition.last_transition_time = long_ago;
    }
    let since = |status: &ClusterProfileStatus| {
        Condition::find(&status.conditions, kind).unwrap().last_transition_time
    };
    assert_eq!(since(&written(Some(health::CheckStatus::Failed), &older)), long_ago);
    assert_ne!(since(&written(Some(health::CheckStatus::NotAsked), &older)), long_ago);
    let with = |checks| {
        let statement = Statement { checks, ..says("ok") };
        status_of(&fields(&published(Health::Ready), &statement, &OfManager::default(), &failed))
    };
    assert_eq!(Condition::find(&with(Some(&[])).conditions, kind), None, "the check is no more");
    assert_eq!(with(None).conditions, failed.conditions, "it is not known which there are");
    for checks in [Some(&[check(None)][..]), None] {
        let statement = Statement { checks, ..says("") };
        let paused = shared_conditions::paused("it moves", &statement, &failed.conditions);
        assert_eq!(paused.len(), 3);
        let paused = Condition::find(&paused, kind).unwrap();
        let expected = (Some(Status::Unknown), "ClusterPaused");
        assert_eq!((paused.status.known(), &*paused.reason), expected);
    }
}
