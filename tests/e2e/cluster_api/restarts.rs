//! The program is killed after each of its writes, whose answer it never gets, from the making of a
//! Cluster to its end: every life does one more step, and nothing is done twice.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use tests::fault_proxy::{FaultProxy, Match, Request};
use tests::kubectl::IDENTITY;

use crate::scene::{AWS_CLUSTERS, CLUSTERS, MACHINES, Scene, aws_cluster, cluster};

const NAME: &str = "phoenix";
/// Between two looks.
const BREATH: Duration = Duration::from_millis(50);
/// More than there are writes.
const LIVES: usize = 40;

fn writes() -> Match {
    let changes = |it: &Request| {
        let changes = [Method::POST, Method::PATCH, Method::DELETE].contains(&it.method);
        // Not the questions about rights, the token of the account, and Events.
        let is_other =
            ["accessreviews", "/token", "/events"].iter().any(|part| it.path.contains(part));
        changes && !is_other
    };
    Match::any().and(changes)
}

/// Plays the provider of infrastructure and Machines, and the user: does the next step, and returns
/// whether the story is over.
async fn play(scene: &Scene, asked_to_end: &mut bool) -> bool {
    let Some(cluster) = scene.find(CLUSTERS, NAME).await else { return true };
    let deleting = |it: &Value| !it["metadata"]["deletionTimestamp"].is_null();
    if let Some(infrastructure) = scene.find(AWS_CLUSTERS, NAME).await {
        let adopted = infrastructure["metadata"]["ownerReferences"].is_array();
        if deleting(&infrastructure) {
            assert!(scene.find(MACHINES, "master").await.is_none(), "Machines go first");
            scene.let_go(AWS_CLUSTERS, NAME);
        } else if adopted && infrastructure["status"]["ready"] != true {
            scene.is_ready(NAME, "h.example.org", 6443);
        }
    }
    if scene.find(MACHINES, "master").await.is_some_and(|it| deleting(&it)) {
        scene.let_go(MACHINES, "master");
    }
    let status = &cluster["status"];
    let complete = status["controlPlaneInitialized"] == true
        && status["phase"] == "provisioned"
        && scene.find("secrets", "phoenix-kubeconfig").await.is_some();
    if complete && !*asked_to_end {
        *asked_to_end = true;
        assert_one_of_each(scene, &cluster).await;
        scene.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    }
    false
}

async fn assert_one_of_each(scene: &Scene, cluster: &Value) {
    assert_eq!(cluster["status"]["apiEndpoints"], json!([{"host": "h.example.org", "port": 6443}]));
    assert_eq!(cluster["metadata"]["finalizers"], json!(["cluster.cluster.x-k8s.io"]));
    let infrastructure = scene.find(AWS_CLUSTERS, NAME).await.unwrap();
    assert_eq!(infrastructure["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    let secrets = scene.run("get secrets -o name");
    let secrets = secrets.lines().filter(|name| name.contains(NAME)).count();
    assert_eq!(secrets, 5);
    // The CA is the first that was created, whichever replica wrote the kubeconfig.
    let text = |secret: Value, key: &str| crate::scene::secret_text(&secret, key);
    let authority = text(scene.find("secrets", "phoenix-ca").await.unwrap(), "tls.crt");
    let kubeconfig = text(scene.find("secrets", "phoenix-kubeconfig").await.unwrap(), "value");
    assert!(kubeconfig.contains(&STANDARD.encode(authority)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_after_every_single_write_builds_and_ends_a_cluster_all_the_same() {
    let scene = Scene::set().await;
    let proxy = FaultProxy::start(&scene.plane, IDENTITY, &[]).await;
    let mut infrastructure = aws_cluster("v1alpha2", NAME, &json!({"region": "r"}));
    infrastructure["metadata"]["finalizers"] = json!(["example.org/test"]);
    scene.create(&infrastructure);
    scene.create(&cluster(NAME));
    let made = scene.find(CLUSTERS, NAME).await.unwrap();
    scene.enlist("master", NAME, true, Some(&made));
    scene.patch_status(&format!("{MACHINES} master"), &json!({"nodeRef": {"name": "n1"}}));
    let mut asked_to_end = false;
    let mut lives = 0;
    let mut over = false;
    while !over {
        lives += 1;
        assert!(lives < LIVES, "it does not come to an end");
        let held = proxy.on(writes()).hold_answer();
        let manager = Scene::start_by(proxy.kubeconfig(), "");
        // What is due is done, for as long as the program has not written.
        let others = async {
            while !play(&scene, &mut asked_to_end).await {
                tokio::time::sleep(BREATH).await;
            }
        };
        tokio::select! {
            () = held.arrived(1) => {}
            () = others => over = true,
        }
        manager.kill();
        manager.exit(tests::PATIENCE).await;
        drop(held);
        over = over || play(&scene, &mut asked_to_end).await;
    }
    eprintln!("{lives} lives");
    assert!(lives > 10, "each did one step: {lives}");
}
