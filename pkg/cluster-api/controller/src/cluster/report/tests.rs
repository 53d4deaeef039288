use serde_json::json;

use super::*;

fn cluster(reference: Value) -> Object<Cluster> {
    Object::read(json!({
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 3},
        "spec": {"infrastructureRef": reference},
    }))
    .unwrap()
}

fn published(cluster: &Object<Cluster>, report: &Report, before: Value) -> Value {
    let mut status: ClusterStatus = serde_json::from_value(before).unwrap();
    report.publish(cluster, &mut status, Timestamp::from_second(0).unwrap());
    serde_json::to_value(status).unwrap()
}

fn older() -> Object<Cluster> {
    cluster(json!({"apiVersion": "i/v1alpha2", "kind": "K", "name": "n"}))
}

#[test]
fn what_was_found_out_is_published_in_the_words_of_both_dialects() {
    let endpoint = Endpoint { host: "h".to_owned(), port: 6443 };
    let mut report = Report {
        infrastructure_ready: true,
        endpoints: vec![endpoint],
        failure_domains: Some(json!([{"name": "a"}])),
        failure: Failure::Said { reason: "CreateError".to_owned(), message: "no room".to_owned() },
        ..Report::default()
    };
    report.conditions.mark_true("InfrastructureReady", "Ready", "");
    let status = published(&older(), &report, json!({}));
    let wanted = json!({
        "phase": "failed", "observedGeneration": 3,
        "apiEndpoints": [{"host": "h", "port": 6443}],
        "infrastructureReady": true, "controlPlaneInitialized": false,
        "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": false},
        "errorReason": "CreateError", "errorMessage": "no room",
        "failureReason": "CreateError", "failureMessage": "no room",
        "failureDomains": [{"name": "a"}],
        "conditions": [{"type": "InfrastructureReady", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 3}],
    });
    assert_eq!(status, wanted);
    let newer = cluster(json!({"apiGroup": "i", "kind": "K", "name": "n"}));
    assert_eq!(published(&newer, &report, json!({}))["phase"], "Provisioned");
}

#[test]
fn the_published_endpoint_follows_that_of_the_spec_and_not_that_of_the_infrastructure() {
    let endpoint = |host: &str| json!({"host": host, "port": 1});
    let of = |spec: &str, found: &str| {
        let mut cluster = older();
        let given = serde_json::from_value(endpoint(spec)).unwrap();
        cluster.body.spec.control_plane_endpoint = Some(given);
        let endpoints = vec![serde_json::from_value(endpoint(found)).unwrap()];
        let report = Report { endpoints, ..Report::default() };
        let before = json!({"apiEndpoints": [endpoint("a"), endpoint("b")]});
        published(&cluster, &report, before)["apiEndpoints"].clone()
    };
    assert_eq!(of("moved", "moved"), json!([endpoint("moved")]));
    assert_eq!(of("a", "a"), json!([endpoint("a"), endpoint("b")]), "it is the first");
    assert_eq!(of("a", "other"), json!([endpoint("a"), endpoint("b")]));
}

#[test]
fn milestones_and_endpoints_stay_and_a_failure_goes_when_the_infrastructure_takes_it_back() {
    let before = json!({"infrastructureReady": true, "apiEndpoints": [{"host": "h", "port": 1}],
        "initialization": {"controlPlaneInitialized": true},
        "errorReason": "x", "errorMessage": "y"});
    let moved = vec![Endpoint { host: "other".to_owned(), port: 2 }];
    let report = Report { endpoints: moved, ..Report::default() };
    let status = published(&older(), &report, before.clone());
    assert_eq!(status["infrastructureReady"], true);
    assert_eq!(status["controlPlaneInitialized"], true);
    assert_eq!(status["apiEndpoints"], before["apiEndpoints"]);
    assert_eq!((&status["errorReason"], &status["phase"]), (&json!("x"), &json!("failed")));
    let healed = Report { failure: Failure::None, ..Report::default() };
    let status = published(&older(), &healed, before);
    assert_eq!((status.get("errorReason"), &status["phase"]), (None, &json!("provisioned")));
}
