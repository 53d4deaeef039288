//! Health, phases and conditions.

use jiff::Timestamp;
use serde_json::json;
use tests::eventually;

use crate::scene::{Scene, condition};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_freezes_fails_and_runs_again_once_it_answers() {
    let scene = Scene::set().await;
    scene.import("cls-one");
    scene.admit("cls-one");
    let manager = scene.start("");
    let status = scene
        .until("cls-one", "runs", |it| it["phase"] == "Running" && it["version"].is_string())
        .await;
    assert_eq!(status["version"], json!("1.36.3"));
    assert_eq!(condition(&status, "HealthCheck")["status"], "True");
    let port = status["addresses"][0]["port"].as_u64().unwrap();
    assert!(
        scene.member.url().ends_with(&port.to_string()),
        "the address of the spec is in the status"
    );

    scene.freeze(true);
    let silent = |it: &serde_json::Value| {
        it["phase"] == "Failed" && it["message"].as_str().is_some_and(|it| it.contains("timeout"))
    };
    let status = scene.until("cls-one", "fails by timeout", silent).await;
    assert_eq!(status["reason"], "HealthCheckFail", "{status}");
    let record = status["availability"].as_str().unwrap_or_default();
    assert!(record.starts_with("v1.") && record.len() > 10, "it has no record: {status}");
    let failed = ["cls-one", "Imported", "1.36.3", "Failed", "AGE", "False", "HealthCheckFail"];
    scene.prints("get cls -o wide", &[&failed]).await;

    scene.freeze(false);
    let status = scene.until("cls-one", "runs again", |it| it["phase"] == "Running").await;
    assert_eq!((&status["reason"], &status["message"]), (&json!(""), &json!("")));

    // A locked cluster is left alone, and says so.
    scene.hub.patch_status("cls cls-one", &json!({"locked": true}));
    let locked = |it: &serde_json::Value| condition(it, "HealthCheck")["reason"] == "ClusterLocked";
    let status = scene.until("cls-one", "is locked", locked).await;
    assert_eq!(status["phase"], "Running");
    scene.hub.patch_status("cls cls-one", &json!({"locked": false}));
    scene
        .until("cls-one", "is unlocked", |it| condition(it, "HealthCheck")["status"] == "True")
        .await;
    scene.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_credential_replaces_a_refused_one_without_a_restart() {
    let scene = Scene::set().await;
    scene.import("cls-two");
    scene.admit_a_stranger("cls-two");
    let manager = scene.start("");
    let status = scene.until("cls-two", "fails", |it| it["phase"] == "Failed").await;
    assert_eq!(condition(&status, "HealthCheck")["reason"], "HealthCheckFail");
    let refused =
        |it: &serde_json::Value| condition(it, "CredentialValid")["reason"] == "Unauthorized";
    scene.until("cls-two", "is refused", refused).await;

    // Credentials are as old as their second.
    let age =
        || scene.hub.object("cc cc-cls-two-stranger")["metadata"]["creationTimestamp"].clone();
    let old: Timestamp = age().as_str().unwrap().parse().unwrap();
    eventually("a second has passed", || Timestamp::now().as_second() > old.as_second()).await;
    scene.admit("cls-two");
    let status = scene.until("cls-two", "runs", |it| it["phase"] == "Running").await;
    assert_eq!(status["reason"], "");
    scene
        .until("cls-two", "is let in", |it| condition(it, "CredentialValid")["status"] == "True")
        .await;
    scene.has_event("SeveralCredentials").await;

    // Another object of the same name, with no way to it.
    scene.hub.run("delete cls cls-two");
    scene.hub.run("delete cc --all");
    scene.import("cls-two");
    // One that was made later and has a credential has been probed.
    scene.import("cls-later");
    scene.admit("cls-later");
    scene.until("cls-later", "runs", |it| it["phase"] == "Running").await;
    let status = &scene.cluster("cls-two")["status"];
    assert_eq!(
        status.get("phase"),
        None,
        "nothing is said of a cluster that waits for its credential"
    );
    scene.end(manager).await;
}
