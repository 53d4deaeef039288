//! The end of a Cluster, in order; and what keeps it from ending.

use serde_json::{Value, json};
use tests::Stopwatch;

use crate::scene::{AWS_CLUSTERS, CLUSTERS, MACHINES, Scene, aws_cluster, cluster, condition};

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// A Cluster whose infrastructure the test holds.
async fn held_cluster(scene: &Scene, name: &str) -> Value {
    let mut infrastructure = aws_cluster("v1alpha2", name, &json!({"region": "r"}));
    infrastructure["metadata"]["finalizers"] = json!(["example.org/test"]);
    scene.create(&infrastructure);
    scene.create(&cluster(name));
    scene
        .until(AWS_CLUSTERS, name, "has an owner", |it| {
            it["metadata"]["ownerReferences"].is_array()
        })
        .await;
    scene.until(CLUSTERS, name, "is kept", |it| it["status"]["phase"] == "provisioning").await
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_go_before_the_infrastructure_and_the_infrastructure_before_the_cluster() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    let made = held_cluster(&scene, "ends").await;
    scene.enlist("worker", "ends", false, Some(&made));
    scene.enlist("master", "ends", true, Some(&made));
    scene.enlist("lent", "ends", false, None);
    scene.run(&format!("delete {CLUSTERS} ends --wait=false"));
    for machine in ["worker", "master"] {
        scene.until(MACHINES, machine, "is deleted", is_deleting).await;
    }
    let waits = |reason: &'static str| {
        move |it: &Value| {
            condition(it, "Deleting")["reason"] == reason && it["status"]["phase"] == "deleting"
        }
    };
    scene
        .until(CLUSTERS, "ends", "waits for all Machines", |it| {
            let message = condition(it, "Deleting")["message"].as_str().unwrap_or_default();
            waits("WaitingForMachines")(it)
                && ["worker", "master", "lent"].iter().all(|machine| message.contains(machine))
        })
        .await;
    assert!(!is_deleting(&scene.find(MACHINES, "lent").await.unwrap()), "it is not the Cluster's");
    assert!(!is_deleting(&scene.find(AWS_CLUSTERS, "ends").await.unwrap()));

    scene.let_go(MACHINES, "worker");
    scene.let_go(MACHINES, "master");
    scene
        .until(CLUSTERS, "ends", "waits for the last Machine", |it| {
            condition(it, "Deleting")["message"] == "waiting for the deletion of Machine lent"
        })
        .await;
    assert!(!is_deleting(&scene.find(AWS_CLUSTERS, "ends").await.unwrap()));
    scene.let_go(MACHINES, "lent");
    scene.run(&format!("delete {MACHINES} lent"));
    scene.until(AWS_CLUSTERS, "ends", "is deleted", is_deleting).await;
    scene.until(CLUSTERS, "ends", "waits for it", waits("WaitingForInfrastructure")).await;
    scene.let_go(AWS_CLUSTERS, "ends");
    scene.until_gone(CLUSTERS, "ends").await;
    scene.has_event("Deleted").await;
    scene.end(manager).await;
}

/// A restart in the middle of a deletion: the watch must tell that the infrastructure is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_started_in_the_middle_of_a_deletion_hears_that_the_infrastructure_is_gone() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    held_cluster(&scene, "middle").await;
    scene.run(&format!("delete {CLUSTERS} middle --wait=false"));
    scene.until(AWS_CLUSTERS, "middle", "is deleted", is_deleting).await;
    manager.kill();
    let manager = scene.start("");
    scene
        .until(CLUSTERS, "middle", "waits", |it| {
            condition(it, "Deleting")["reason"] == "WaitingForInfrastructure"
        })
        .await;
    // The words may be those of the first.
    manager.until_metric("icm_reconcile_total", &[], |passes| passes >= 1.0).await;
    scene.let_go(AWS_CLUSTERS, "middle");
    let gone = Stopwatch::start();
    scene.until_gone(CLUSTERS, "middle").await;
    let took = gone.elapsed();
    assert!(took.as_secs() < 25, "by the watch, not by the next look: {took:?}");
    scene.end(manager).await;
}

/// rule:infrastructure-of-another-cluster-is-left
#[tokio::test(flavor = "multi_thread")]
async fn the_infrastructure_of_another_cluster_is_neither_adopted_nor_deleted() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    held_cluster(&scene, "first").await;
    let mut second = cluster("second");
    second["spec"]["infrastructureRef"]["name"] = json!("first");
    scene.create(&second);
    let refused = scene
        .until(CLUSTERS, "second", "is refused", |it| {
            condition(it, "InfrastructureReady")["reason"] == "OwnedByAnotherCluster"
        })
        .await;
    assert_eq!(refused["status"]["phase"], "provisioning");
    scene.run(&format!("delete {CLUSTERS} second"));
    let first = scene.find(AWS_CLUSTERS, "first").await.unwrap();
    assert!(!is_deleting(&first));
    assert_eq!(first["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    scene.run(&format!("delete {CLUSTERS} first --wait=false"));
    scene.until(AWS_CLUSTERS, "first", "is deleted", is_deleting).await;
    scene.let_go(AWS_CLUSTERS, "first");
    scene.until_gone(CLUSTERS, "first").await;
    scene.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_cluster_is_neither_built_nor_deleted_until_it_is_not() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    scene.create(&aws_cluster("v1alpha2", "rests", &json!({"region": "r"})));
    let mut rests = cluster("rests");
    rests["spec"]["paused"] = json!(true);
    scene.create(&rests);
    let paused = |it: &Value| condition(it, "Paused")["status"] == "True";
    let resting = scene.until(CLUSTERS, "rests", "rests", paused).await;
    assert_eq!(resting["metadata"]["finalizers"], Value::Null);
    let infrastructure = scene.find(AWS_CLUSTERS, "rests").await.unwrap();
    assert_eq!(infrastructure["metadata"]["ownerReferences"], Value::Null);

    let of = format!("{CLUSTERS} rests");
    scene.patch(&of, "merge", &json!({"spec": {"paused": false}}));
    scene.until(CLUSTERS, "rests", "is kept", |it| it["status"]["phase"] == "provisioning").await;
    scene.run(&format!("annotate {of} cluster.x-k8s.io/paused=yes"));
    scene.until(CLUSTERS, "rests", "rests again", paused).await;
    scene.run(&format!("delete {of} --wait=false"));
    scene
        .until(CLUSTERS, "rests", "says why it does not go", |it| {
            let said = condition(it, "Paused")["message"].as_str().unwrap_or_default();
            is_deleting(it) && said.starts_with("reconciliation and deletion are paused")
        })
        .await;
    assert!(!is_deleting(&scene.find(AWS_CLUSTERS, "rests").await.unwrap()));
    scene.run(&format!("annotate {of} cluster.x-k8s.io/paused-"));
    scene.until_gone(CLUSTERS, "rests").await;
    scene.until_gone(AWS_CLUSTERS, "rests").await;
    scene.end(manager).await;
}
