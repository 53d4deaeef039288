use health::Moment;
use serde_json::json;

use super::*;
use crate::tke::testing::cluster;

const NOW: &str = "2026-06-01T12:00:00Z";
const BEFORE: &str = "2026-06-01T11:00:00Z";
const LONG_AGO: &str = "2026-06-01T10:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn published(health: Health, since: &str) -> Published {
    Published::seed(health, time(since), time(since), Some(time(NOW)))
}

struct Said<'a> {
    published: Option<&'a Published>,
    paused: bool,
}

/// The fields that are written to this cluster.
fn written(cluster: &Object<Cluster>, said: &Said<'_>, facts: &Facts) -> Written {
    let now = Moment { monotonic: std::time::Instant::now(), wall: time(NOW) };
    let (published, paused) = (said.published, said.paused);
    write(
        cluster,
        &Statement { message: "how it is", paused, ..Statement::new(published, now) },
        facts,
        StatusSchema::Ours,
    )
}

fn status(cluster: &Object<Cluster>, published: Option<&Published>) -> Value {
    let written = written(cluster, &Said { published, paused: false }, &Facts::default());
    written.fields(cluster)["status"].clone()
}

fn in_phase(phase: &str) -> Object<Cluster> {
    cluster(|object| {
        object["status"] =
            json!({"phase": phase, "reason": "HealthCheckFail", "message": "before"});
    })
}

#[test]
fn a_healthy_cluster_runs_and_has_no_reason() {
    for phase in ["Running", "Failed", "Initializing", ""] {
        let status = status(&in_phase(phase), Some(&published(Health::Ready, BEFORE)));
        let expected = json!({
            "phase": "Running", "reason": "", "message": "",
            "conditions": [{"type": "HealthCheck", "status": "True", "reason": "", "message": "how it is",
                "lastProbeTime": NOW, "lastTransitionTime": BEFORE}],
        });
        assert_eq!(status, expected, "{phase}");
    }
}

#[test]
fn a_cluster_that_fails_in_whatever_way_says_so_above_and_in_its_condition() {
    for health in [Health::NotReady, Health::Unreachable, Health::Malformed] {
        let status = status(&in_phase("Running"), Some(&published(health, BEFORE)));
        let expected = json!({
            "phase": "Failed", "reason": "HealthCheckFail", "message": "how it is",
            "conditions": [{"type": "HealthCheck", "status": "False", "reason": "HealthCheckFail",
                "message": "how it is", "lastProbeTime": NOW, "lastTransitionTime": BEFORE}],
        });
        assert_eq!(status, expected);
    }
    let mut few_nodes = published(Health::NotReady, BEFORE);
    few_nodes.finding = Some(Finding::failed(Code::NodesNotReady, ProbePath::Readyz));
    assert_eq!(status(&in_phase("Running"), Some(&few_nodes))["reason"], "NodesNotReady");
}

/// rule:phases-of-others-are-kept
#[test]
fn a_phase_of_others_is_not_written_and_its_reason_neither() {
    for phase in ["Upgrading", "Upscaling", "Downscaling", "Recovering", "New"] {
        let cluster = in_phase(phase);
        for health in [Health::Ready, Health::NotReady] {
            let status = status(&cluster, Some(&published(health, BEFORE)));
            let fields: Vec<_> = status.as_object().unwrap().keys().collect();
            assert_eq!(fields, ["conditions"], "{phase}");
        }
    }
    let fields =
        written(&in_phase("Running"), &Said { published: None, paused: false }, &Facts::default());
    assert_eq!(fields.fields(&in_phase("Running"))["metadata"], json!({"resourceVersion": "7"}));
}

#[test]
fn when_nobody_knows_only_the_condition_says_so() {
    for (phase, kept) in
        [("Running", json!("Running")), ("Failed", json!("Failed")), ("", Value::Null)]
    {
        let status = status(&in_phase(phase), Some(&published(Health::Unknown, BEFORE)));
        let told = (&status["phase"], &status["reason"], &status["message"]);
        assert_eq!(told, (&kept, &json!("HealthCheckFail"), &json!("before")));
        let condition = &status["conditions"][0];
        let told = (&condition["status"], &condition["reason"]);
        assert_eq!(told, (&json!("Unknown"), &json!("ClusterStatusUnknown")));
    }
}

/// rule:a-restart-changes-nothing
#[test]
fn a_cluster_whose_lease_stopped_keeps_its_phase_and_is_taken_over_as_such() {
    let health = Health::HeartbeatStopped;
    let mut whole = in_phase("Running").whole();
    whole["status"] = status(&in_phase("Running"), Some(&published(health, BEFORE)));
    assert_eq!(whole["status"]["phase"], "Running");
    assert_eq!(whole["status"]["conditions"][0]["reason"], "HeartbeatStopped");
    let seeded = seed(&Object::read(whole).unwrap(), time(NOW)).unwrap();
    assert_eq!((seeded.health, seeded.ready.since), (health, time(BEFORE)));
}

#[test]
fn a_locked_cluster_keeps_its_phase_and_says_that_it_is_locked() {
    let said = Said { published: Some(&published(Health::Ready, BEFORE)), paused: true };
    let mut cluster = in_phase("Failed");
    let first = written(&cluster, &said, &Facts::default()).fields(&cluster)["status"].clone();
    assert_eq!((&first["phase"], &first["message"]), (&json!("Failed"), &json!("before")));
    let condition = &first["conditions"][0];
    let told = (&condition["status"], &condition["reason"], &condition["lastTransitionTime"]);
    assert_eq!(told, (&json!("Unknown"), &json!("ClusterLocked"), &json!(NOW)));

    // Later writes do not move the time.
    cluster.status.conditions = serde_json::from_value(first["conditions"].clone()).unwrap();
    cluster.status.conditions[0].last_transition_time = Some(time(LONG_AGO));
    let again = written(&cluster, &said, &Facts::default()).fields(&cluster)["status"].clone();
    assert_eq!(again["conditions"][0]["lastTransitionTime"], LONG_AGO);

    // And the result after it is a transition, although the one before was the same.
    cluster.status.conditions[0].last_transition_time = Some(time(BEFORE));
    let unlocked = status(&cluster, Some(&published(Health::Ready, LONG_AGO)));
    assert_eq!(unlocked["conditions"][0]["lastTransitionTime"], NOW);
}

#[test]
fn what_was_not_learnt_yet_is_kept_and_conditions_of_others_are_not_ours() {
    let cluster = cluster(|object| {
        object["status"] = json!({
            "phase": "Running", "version": "1.30.1",
            "conditions": [
                {"type": "EnsureX", "status": "True"},
                {"type": "SyncVersion", "status": "True", "lastTransitionTime": LONG_AGO},
            ],
            "resource": {"capacity": {"cpu": "4"}},
        });
    });
    let said = Said { published: None, paused: false };
    let before = written(&cluster, &said, &Facts::default());
    let status = before.fields(&cluster)["status"].clone();
    assert_eq!(
        (&status["version"], &status["resource"]["capacity"]["cpu"]),
        (&json!("1.30.1"), &json!("4"))
    );
    let kinds: Vec<_> =
        status["conditions"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["SyncVersion"]);
    assert_eq!(before.fingerprint(None), fingerprint_of(&cluster, None, StatusSchema::Ours));

    let mut facts = Facts::default();
    facts.versioned(Some("1.36.3".into()), time(NOW));
    let after = written(&cluster, &said, &facts);
    let status = after.fields(&cluster)["status"].clone();
    assert_eq!(status["version"], "1.36.3");
    assert_eq!(status["conditions"][0]["lastTransitionTime"], LONG_AGO);
    assert_ne!(after.fingerprint(None), before.fingerprint(None));
}

#[test]
fn the_addresses_of_the_spec_are_published_whenever_the_status_has_others() {
    let address = |host: &str| json!([{"type": "Internal", "host": host, "port": 6443}]);
    let (none, said) = (json!(null), Said { published: None, paused: false });
    // (spec, status; what is written, whether that is worth a write)
    let rows = [
        (address("h"), none.clone(), address("h"), true),
        // Left out, the API server would remove what it was given before.
        (address("h"), address("h"), address("h"), false),
        (address("h"), address("before"), address("h"), true),
        // Those that the spec gave before stay when it gives none any more.
        (none.clone(), address("of-others"), address("of-others"), false),
        (none.clone(), none.clone(), none, false),
    ];
    for (spec, shown, expected, worth_a_write) in rows {
        let cluster = cluster(|object| {
            object["spec"]["addresses"] = spec.clone();
            object["status"]["addresses"] = shown.clone();
        });
        let written = written(&cluster, &said, &Facts::default());
        assert_eq!(written.fields(&cluster)["status"]["addresses"], expected, "{spec} {shown}");
        let differs =
            written.fingerprint(None) != fingerprint_of(&cluster, None, StatusSchema::Ours);
        assert_eq!(differs, worth_a_write, "{spec} {shown}");
    }
}

#[test]
fn sums_that_differ_little_from_those_that_were_worth_a_write_are_our_own() {
    let with = |cpu: &str| {
        cluster(|object| object["status"]["resource"] = json!({"capacity": {"cpu": cpu}}))
    };
    let notable = with("1000").status.resource.clone();
    let ours = fingerprint_of(&with("1000"), None, StatusSchema::Ours);
    assert_eq!(fingerprint_of(&with("1005"), notable.as_ref(), StatusSchema::Ours), ours);
    assert_ne!(fingerprint_of(&with("1200"), notable.as_ref(), StatusSchema::Ours), ours);
    assert_ne!(fingerprint_of(&cluster(|_| {}), notable.as_ref(), StatusSchema::Ours), ours);
}

#[test]
fn a_schema_without_our_extensions_gets_none_of_them_and_shows_what_was_written() {
    let summary = json!({
        "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}, "allocated": {"cpu": "2"},
        "allocating": {"cpu": "1"}, "nodes": {"total": 1}, "pods": 9, "observedTime": NOW,
    });
    let upstream =
        json!({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}, "allocated": {"cpu": "2"}});
    let summary: ResourceSummary = serde_json::from_value(summary).unwrap();
    let mut facts = Facts::default();
    (facts.summary, facts.notable) = (Some(summary.clone()), Some(summary.clone()));
    let now = Moment { monotonic: std::time::Instant::now(), wall: time(NOW) };
    let statement = Statement::new(None, now);
    let before = cluster(|_| {});
    let written = write(&before, &statement, &facts, StatusSchema::Upstream);
    assert_eq!(written.fields(&before)["status"]["resource"], upstream);
    // An object of before that has them yet is not written over again and again.
    for shown in [upstream, json!(summary)] {
        let after = cluster(|object| object["status"]["resource"] = shown.clone());
        let shown = fingerprint_of(&after, facts.notable.as_ref(), StatusSchema::Upstream);
        assert_eq!(written.fingerprint(facts.notable.as_ref()), shown);
    }
}

#[test]
fn times_and_messages_are_not_worth_a_write() {
    let cluster = in_phase("Running");
    let print = |published: &Published| {
        written(&cluster, &Said { published: Some(published), paused: false }, &Facts::default())
            .fingerprint(None)
    };
    let ready = published(Health::Ready, BEFORE);
    let mut later = published(Health::Ready, LONG_AGO);
    later.probed = Some(time(BEFORE));
    assert_eq!(print(&ready), print(&later));
    let failed = published(Health::NotReady, BEFORE);
    assert_ne!(print(&ready), print(&failed));
    assert_eq!(print(&failed), print(&published(Health::Unreachable, BEFORE)));
}

/// rule:a-restart-changes-nothing
#[test]
fn a_process_that_takes_over_goes_on_from_the_phase_or_else_from_the_condition() {
    let of = |phase: &str, status: &str| {
        let cluster = cluster(|object| {
            object["status"] = json!({"phase": phase});
            if !status.is_empty() {
                object["status"]["conditions"] = json!([{"type": "HealthCheck", "status": status,
                    "reason": "FailedHealthCheck", "lastTransitionTime": LONG_AGO,
                    "lastProbeTime": "2027-01-01T00:00:00Z"}]);
            }
        });
        seed(&cluster, time(NOW))
    };
    // (phase, condition; health, since)
    let rows = [
        ("Running", "True", Some((Health::Ready, LONG_AGO))),
        // The first probe decides, and nothing is published before it.
        ("Running", "False", None),
        ("Failed", "True", None),
        ("Running", "", Some((Health::Ready, NOW))),
        ("Failed", "False", Some((Health::NotReady, LONG_AGO))),
        ("Failed", "", Some((Health::NotReady, NOW))),
        ("Upgrading", "True", Some((Health::Ready, LONG_AGO))),
        ("Upgrading", "False", Some((Health::NotReady, LONG_AGO))),
        ("Upgrading", "", None),
        ("Initializing", "", None),
        ("Running", "Unknown", None),
        ("Failed", "Unknown", None),
    ];
    for (phase, condition, expected) in rows {
        let seeded = of(phase, condition);
        let told = seeded.as_ref().map(|it| (it.health, it.ready.since));
        let expected = expected.map(|(health, since)| (health, time(since)));
        assert_eq!(told, expected, "{phase} {condition}");
        // Upstream writes the time of its next check.
        assert!(seeded.and_then(|it| it.probed).is_none_or(|probed| probed <= time(NOW)));
    }
}

/// rule:a-restart-changes-nothing
#[test]
fn a_cluster_without_ready_nodes_is_taken_over_as_such_and_nothing_is_written() {
    for (reason, lacks) in [("NodesNotReady", true), ("HealthCheckFail", false)] {
        let object = cluster(|object| {
            object["status"] = json!({
                "phase": "Failed", "reason": reason, "conditions": [{
                    "type": "HealthCheck", "status": "False", "reason": reason,
                    "lastTransitionTime": BEFORE,
                }],
            });
        });
        let seeded = seed(&object, time(NOW)).unwrap();
        assert_eq!(lacks_nodes(Some(&seeded)), lacks, "{reason}");
        let said = Said { published: Some(&seeded), paused: false };
        let written = written(&object, &said, &Facts::default());
        assert_eq!(
            written.fingerprint(None),
            fingerprint_of(&object, None, StatusSchema::Ours),
            "{reason}"
        );
    }
}

/// rule:a-record-costs-no-write
#[test]
fn a_record_is_written_and_changes_no_fingerprint() {
    let (cluster, ready) = (in_phase("Running"), published(Health::Ready, BEFORE));
    let with = |record| {
        let now = Moment { monotonic: std::time::Instant::now(), wall: time(NOW) };
        let (published, message, paused) = (Some(&ready), "", false);
        let statement =
            Statement { published, message, record, within: None, checks: None, paused, now };
        write(&cluster, &statement, &Facts::default(), StatusSchema::Ours)
    };
    let [none, first, second] = [None, Some("v1.1."), Some("v1.2.")].map(with);
    assert_eq!(none.fields(&cluster)["status"].get("availability"), None);
    assert_eq!(second.fields(&cluster)["status"]["availability"], "v1.2.");
    assert_eq!(first.fingerprint(None), second.fingerprint(None));
    assert_eq!(none.fingerprint(None), second.fingerprint(None));
    let shown = |record: &str| {
        let cluster =
            crate::tke::testing::cluster(|it| it["status"]["availability"] = json!(record));
        fingerprint_of(&cluster, None, StatusSchema::Ours)
    };
    assert_eq!(shown("v1.1."), shown("v1.2."));
}

#[test]
fn a_check_has_a_condition_of_its_name_that_no_fingerprint_has() {
    let check = |status| CheckReport {
        name: "CoreDNS".into(),
        status,
        message: "it is there".into(),
        since: time(BEFORE),
        probed: Some(time(NOW)),
    };
    let now = Moment { monotonic: std::time::Instant::now(), wall: time(NOW) };
    let published = published(Health::Ready, BEFORE);
    let of_schema = |object: &Object<Cluster>, checks: Option<&[CheckReport]>, schema| {
        let (published, message) = (Some(&published), "");
        let statement = Statement {
            published,
            message,
            record: None,
            within: None,
            checks,
            paused: false,
            now,
        };
        write(object, &statement, &Facts::default(), schema)
    };
    let written = |object: &Object<Cluster>, checks: &[CheckReport]| {
        of_schema(object, Some(checks), StatusSchema::Ours)
    };
    let object = in_phase("Running");
    let passed = written(&object, &[check(Some(health::CheckStatus::Passed))]);
    let expected = json!({
        "type": "CoreDNS", "status": "True", "reason": "CheckPassed", "message": "it is there",
        "lastProbeTime": NOW, "lastTransitionTime": BEFORE,
    });
    assert_eq!(passed.fields(&object)["status"]["conditions"][1], expected);
    assert_eq!(passed.fingerprint(None), written(&object, &[]).fingerprint(None));
    let mut older = expected;
    older["lastTransitionTime"] = LONG_AGO.into();
    let stored = cluster(|object| {
        object["status"] = json!({"phase": "Running", "conditions": [older]});
    });
    let again = written(&stored, &[check(Some(health::CheckStatus::Passed))]).fields(&stored);
    assert_eq!(again["status"]["conditions"][1]["lastTransitionTime"], LONG_AGO);
    let unknown = written(&stored, &[check(None)]).fields(&stored);
    assert_eq!(unknown["status"]["conditions"][1], older, "no result yet");
    // The check is gone, or it is not known which there are. What the schema of upstream keeps is removed by name.
    let gone = json!({"type": "CoreDNS", "$patch": "delete"});
    for (schema, checks, expected) in [
        (StatusSchema::Ours, Some(&[][..]), None),
        (StatusSchema::Upstream, Some(&[]), Some(&gone)),
        (StatusSchema::Ours, None, Some(&older)),
        (StatusSchema::Upstream, None, Some(&older)),
    ] {
        let fields = of_schema(&stored, checks, schema).fields(&stored);
        assert_eq!(fields["status"]["conditions"].get(1), expected, "{schema:?}");
    }
}
