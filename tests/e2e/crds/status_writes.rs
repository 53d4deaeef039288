//! Health is written whatever stands in the spec of an object, and nothing is asked for it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tests::Process;
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::programs::workspace;
use tests::stored_before::{after_an_upgrade, hopeless};
use tokio::net::TcpListener;
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn health_is_written_of_objects_that_no_rule_would_take_and_their_machines_are_not_dialled() {
    // Upstream dialled the machines of a Cluster with each write of its status.
    let machine = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = machine.local_addr().unwrap().port();
    let mut stored = hopeless();
    let own = json!([{"ip": "127.0.0.1", "port": port, "username": ""}, {"ip": "127.0.0.1", "port": port, "username": ""}]);
    stored[0]["spec"]["machines"] = own;
    (stored[1]["spec"]["ip"], stored[1]["spec"]["port"]) = (json!("127.0.0.1"), json!(port));
    let hub = after_an_upgrade(&stored).await;
    hub.run("apply -f config/crd/platform.tkestack.io_clustercredentials.yaml");
    hub.await_crds();
    for object in ["cls cls.bad", "mc mc.bad"] {
        hub.patch_status(object, &json!({"phase": "Running"}));
    }
    let _manager = Process::with_kubeconfig(&hub.plane.admin_kubeconfig())
        .args(["--controllers=cluster-health-controller", "--leader-elect=false"])
        .args(["--cluster-health-kubefed-namespace=", "--healthcheck-period=1s"])
        .args(["--cluster-health-confirm-interval=1s", "--cluster-health-machine-period=1s"])
        .args(["--cluster-health-heartbeat-interval=0s"])
        .start();
    written(&hub, "cls cls.bad", ["HealthCheck", "False", "HealthCheckFail"]).await;
    written(&hub, "mc mc.bad", ["HealthCheck", "Unknown", "ClusterNotFound"]).await;
    written(&hub, "-n default kubefedcluster bad", ["Ready", "False", "MalformedClusterConfig"])
        .await;
    assert_eq!(hub.object("cls cls.bad")["status"]["phase"], "Failed");
    // Again and again: with each probe, as asked for.
    let version = || hub.object("cls cls.bad")["metadata"]["resourceVersion"].clone();
    for _ in 0..2 {
        let before = version();
        poll("it is written again", async || (version() != before).then_some(())).await;
    }
    let dialled = timeout(Duration::from_millis(200), machine.accept()).await;
    assert!(dialled.is_err(), "a machine was dialled");
}

async fn written(hub: &Kubectl, object: &str, wanted: [&str; 3]) {
    poll(&format!("{object} is {wanted:?}"), async || {
        let status = hub.object(object)["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let words = |it: &Value| ["type", "status", "reason"].map(|field| it[field].clone());
        conditions.iter().any(|it| words(it) == wanted).then_some(())
    })
    .await;
}

/// Whether a rule of a webhook or a policy takes in the status of anything.
fn takes_in_a_status(rule: &Value) -> bool {
    let resources = rule["resources"].as_array().cloned().unwrap_or_default();
    let takes = |resource: &str| match resource.split_once('/') {
        None => false,
        Some((_, subresource)) => ["*", "status"].contains(&subresource),
    };
    resources.iter().filter_map(Value::as_str).any(takes)
}

/// The rules of everything in this folder that an API server asks before it writes.
fn admissions(folder: &Path) -> Vec<Value> {
    let mut rules = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("templates") {
            continue; // read as helm makes them, in deploy/helm/golden
        }
        if path.is_dir() {
            rules.extend(admissions(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path).unwrap();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            rules.extend(documents.iter().flat_map(rules_of));
        }
    }
    rules
}

fn rules_of(object: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    if kind.ends_with("WebhookConfiguration") {
        list(&object["webhooks"]).iter().flat_map(|webhook| list(&webhook["rules"])).collect()
    } else if kind.ends_with("AdmissionPolicy") {
        list(&object["spec"]["matchConstraints"]["resourceRules"])
    } else {
        Vec::new()
    }
}

#[test]
fn no_admission_of_ours_is_asked_about_a_status() {
    for (resources, taken_in) in [
        (json!(["clusters"]), false),
        (json!(["*"]), false),
        (json!(["clusters/scale"]), false),
        (json!(["clusters", "clusters/status"]), true),
        (json!(["*/*"]), true),
        (json!(["*/status"]), true),
    ] {
        let webhook = json!({"kind": "ValidatingWebhookConfiguration",
            "webhooks": [{"rules": [{ "resources": resources }]}]});
        let policy = json!({"kind": "ValidatingAdmissionPolicy",
            "spec": {"matchConstraints": {"resourceRules": [{ "resources": resources }]}}});
        for object in [webhook, policy] {
            assert_eq!(rules_of(&object).iter().any(takes_in_a_status), taken_in, "{object}");
        }
    }
    let rules: Vec<_> =
        ["config", "deploy"].iter().flat_map(|it| admissions(&workspace().join(it))).collect();
    assert!(!rules.is_empty(), "there is one that copies addresses");
    for rule in rules {
        assert!(!takes_in_a_status(&rule), "{rule}");
    }
}
