//! Clusters whose status another controller has written before, and credentials that come late.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::stalls;
use tokio::time::sleep;

use crate::scene::{Scene, address, condition, port};

/// Status of a failing Cluster that upstream's manager leaves behind.
fn failed() -> Value {
    let long_ago = "2026-01-01T00:00:00Z";
    json!({
        "phase": "Failed", "reason": "HealthCheckFail", "message": "dial tcp: refused",
        "conditions": [{
            "type": "HealthCheck", "status": "False", "reason": "HealthCheckFail",
            "message": "dial tcp: refused", "lastProbeTime": long_ago, "lastTransitionTime": long_ago,
        }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_controller_said_of_a_failure_is_taken_away_with_the_failure() {
    let scene = Scene::set().await;
    // One cluster is taken over while it fails; in the other only the phase was corrected.
    let mut mended = failed();
    mended["phase"] = json!("Running");
    mended["conditions"][0]["status"] = json!("True");
    for (name, status) in [("cls-failed", failed()), ("cls-mended", mended)] {
        scene.import(name);
        scene.admit(name);
        scene.hub.patch_status(&format!("cls {name}"), &status);
    }
    let manager = scene.start("");
    for name in ["cls-failed", "cls-mended"] {
        let is_clean = |it: &Value| {
            let of = condition(it, "HealthCheck");
            let is_empty = |text: &Value| text.as_str().unwrap_or_default().is_empty();
            it["phase"] == "Running"
                && of["status"] == "True"
                && [&it["reason"], &it["message"], &of["reason"]].into_iter().all(is_empty)
        };
        scene.until(name, "runs and says nothing else", is_clean).await;
    }
    scene.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_the_spec_gives_no_more_stay_in_the_status() {
    let scene = Scene::set().await;
    scene.import("cls-moved");
    scene.admit("cls-moved");
    let manager = scene.start("");
    scene.until("cls-moved", "runs", |it| it["phase"] == "Running").await;
    let probed = |it: &Value| condition(it, "HealthCheck")["lastProbeTime"].clone();
    scene.hub.patch("cls cls-moved", "merge", &json!({"spec": {"addresses": null}}));
    // A write of ours that rests on the new spec.
    scene.hub.patch_status("cls cls-moved", &json!({"reason": "SomebodyElse"}));
    let status = scene.until("cls-moved", "is written over", |it| it["reason"] == "").await;
    assert_eq!(status["addresses"], json!([address(port(scene.member.url()))]), "{status}");
    assert!(probed(&status).is_string());
    scene.end(manager).await;
}

/// The product spreads the first probes of listed Clusters over ten seconds; these Clusters must
/// not wait for that.
///
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_comes_seconds_after_its_cluster_is_used_within_a_second() {
    let scene = Scene::set().await;
    let names: Vec<_> = (0..6).map(|number| format!("cls-late-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let mut cluster = Scene::cluster_at(name, &[port(scene.member.url())]);
        if number % 2 == 0 {
            cluster["spec"]["clusterCredentialRef"] = json!({"name": format!("cc-{name}")});
        }
        scene.hub.create(&cluster);
    }
    let manager = scene.start("--healthcheck-period=300s");
    sleep(Duration::from_secs(5)).await;
    for name in &names {
        let began = Instant::now();
        scene.admit(name);
        scene.until(name, "runs", |it| it["phase"] == "Running").await;
        let took = stalls::without(began, Instant::now());
        println!("{name} runs {took:?} after its credential came");
        // kubectl, a read, a probe and a write, on a busy machine.
        assert!(took < Duration::from_secs(3), "{name} runs only after {took:?}");
    }
    scene.end(manager).await;
}
