//! The contract v1beta1, with the last core that knows no newer one.

use serde_json::{Value, json};

use crate::aws_contracts::{Older, keeps_older};
use crate::aws_stage::{REGION, is_ready, ours, spec};
use crate::core_stage::{AWS_CLUSTERS, CoreStage};
use crate::scene::condition;

const CLUSTERS: &str = "clusters.v1beta1.cluster.x-k8s.io";
const CRD: &str = "label crd awsclusters.infrastructure.cluster.x-k8s.io --overwrite";
/// Outside of the network.
const WRONG: &str = "192.168.0.0/24";

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "name": name, "namespace": "default"}},
    })
}

/// The status of a condition of a Cluster, and its reason.
fn is(kind: &'static str, status: &'static str) -> impl Fn(&Value) -> bool {
    move |object| condition(object, kind)["status"] == status
}

fn is_provisioned(object: &Value) -> bool {
    object["status"]["infrastructureReady"] == true
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn an_older_core_finds_all_that_its_contract_asks_for() {
    let Some(stage) = CoreStage::set_older().await else { return };
    let before = stage.totals().await;
    stage.run(&format!("{CRD} cluster.x-k8s.io/v1beta2- cluster.x-k8s.io/v1beta1=v1beta2"));
    let manager = stage.product("--infra-contract=v1beta1");
    stage.create_all(&[ours("one", &spec(WRONG)), cluster("one")]);
    let failed = |it: &Value| it["status"]["failureReason"] == "InvalidConfiguration";
    let refused = stage.until(CLUSTERS, "one", "has the failure", failed).await;
    assert!(!is_provisioned(&refused));
    let of = format!("{AWS_CLUSTERS} one");
    let right = json!({"spec": spec("10.1.1.0/24")});
    stage.patch(&of, "merge", &right);
    let copied = stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    let made = stage.until(AWS_CLUSTERS, "one", "is ready", is_ready).await;
    let zone = format!("{REGION}a");
    keeps_older(&made, &[(&*zone, Older { control_plane: true })]);
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], copied["metadata"]["uid"]);
    assert_eq!(copied["spec"]["controlPlaneEndpoint"], made["spec"]["controlPlaneEndpoint"]);
    assert_eq!(copied["status"]["failureDomains"], json!({zone: {"controlPlane": true}}));
    stage.until(CLUSTERS, "one", "mirrors Ready", is("InfrastructureReady", "True")).await;

    // It gets worse, and better again.
    stage.patch(&of, "merge", &json!({"spec": spec(WRONG)}));
    let worse = stage.until(CLUSTERS, "one", "is worse", is("InfrastructureReady", "False")).await;
    assert!(is_provisioned(&worse), "provisioned stays");
    let not_ready = stage.find(AWS_CLUSTERS, "one").await.unwrap();
    let reasons = [(&worse, "InfrastructureReady"), (&not_ready, "Ready")];
    let [mirrored, reason] =
        reasons.map(|(object, kind)| condition(object, kind)["reason"].clone());
    assert_eq!(mirrored, reason);
    stage.patch(&of, "merge", &right);
    stage.until(CLUSTERS, "one", "is better", is("InfrastructureReady", "True")).await;

    stage.patch(&format!("{CLUSTERS} one"), "merge", &json!({"spec": {"paused": true}}));
    stage.until(AWS_CLUSTERS, "one", "is paused", is("Paused", "True")).await;
    stage.patch(&format!("{CLUSTERS} one"), "merge", &json!({"spec": {"paused": null}}));
    stage.until(AWS_CLUSTERS, "one", "goes on", is("Paused", "False")).await;
    stage.run(&format!("delete {CLUSTERS} one --wait=false"));
    stage.until_gone(CLUSTERS, "one").await;
    stage.until_gone(AWS_CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.finish(manager).await;
}
