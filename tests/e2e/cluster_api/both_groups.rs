//! Cluster API's group of the product and the flavour `capi` of its health on one Cluster, alone and together with the core.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::control_plane::ControlPlane;
use tests::kubectl::FEDERATION;
use tests::member::{Account, member};
use tests::{PATIENCE, Process};

use crate::aws_stage::{Stage, ours, spec};
use crate::core_stage::{AWS_CLUSTERS, CLUSTERS, CoreStage, History};
use crate::scene::condition;
use crate::{core_stage, scene};

const HEALTHY: &str = "infra-controller-manager/Healthy";
const INFRASTRUCTURE: &str = "InfrastructureReady";
/// How often the conditions of others change.
const ROUNDS: usize = 4;

/// Starts both groups in one process, with the rights of each.
fn start(stage: &Stage, mode: &str) -> Process {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FEDERATION}});
    stage.may_create(&namespace);
    let files = ["role", "role-binding", "cluster-health-account", "cluster-health-capi"];
    for file in files.into_iter().chain(["cluster-health-member-secrets"]) {
        stage.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    stage.run("apply -n default -f config/rbac/namespaces/member-secrets.yaml");
    stage.start_with_aws(&format!(
        "--capi-mode={mode} --controllers=cluster-health-controller --cluster-health-flavours=capi \
         --cluster-health-period=1s --cluster-health-timeout=900ms"
    ))
}

fn secret(member: &ControlPlane, token: &str) -> Value {
    let server = json!({"server": member.url(), "certificate-authority-data": STANDARD.encode(member.ca_pem())});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{"name": "one", "cluster": server}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "users": [{"name": "one", "user": {"token": token}}],
    });
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": "probe", "namespace": "default"}, "stringData": {"value": config.to_string()},
    })
}

/// Creates the Cluster, has the other conditions change, and asserts that no version lacks a condition that an older
/// one has.
async fn keeps_all(stage: &Stage, member: &ControlPlane, mut cluster: Value, history: History) {
    let token = Account::of(member).await.token;
    stage.create(&secret(member, &token));
    stage.create(&ours("one", &spec("10.1.1.0/24")));
    cluster["metadata"]["annotations"] = json!({"infra-controller-manager/probe-secret": "probe"});
    stage.create(&cluster);
    let is_ready = |it: &Value| condition(it, INFRASTRUCTURE)["status"] == "True";
    stage.until(CLUSTERS, "one", "has its infrastructure", is_ready).await;
    let of = format!("{CLUSTERS} one");
    stage.patch_status(&of, &json!({"initialization": {"controlPlaneInitialized": true}}));
    let is_healthy = |it: &Value| condition(it, HEALTHY)["status"] == "True";
    let first = stage.until(CLUSTERS, "one", "is healthy", is_healthy).await;
    for _ in 0..ROUNDS {
        // Outside of the network, and back.
        for (private, status) in [("192.168.0.0/24", "False"), ("10.1.1.0/24", "True")] {
            stage.patch(&format!("{AWS_CLUSTERS} one"), "merge", &json!({"spec": spec(private)}));
            let is_next = |it: &Value| condition(it, "Ready")["status"] == status;
            stage.until(AWS_CLUSTERS, "one", "follows its spec", is_next).await;
        }
    }
    let since = |it: &Value| condition(it, HEALTHY)["lastTransitionTime"].clone();
    let last = stage.until(CLUSTERS, "one", "has its infrastructure again", is_ready).await;
    assert_eq!(since(&last), since(&first), "{last:#}");
    stage.patch(&of, "merge", &json!({"spec": {"paused": true}}));
    let is_paused = |it: &Value| condition(it, HEALTHY)["reason"] == "ClusterPaused";
    stage.until(CLUSTERS, "one", "is paused", is_paused).await;
    let mut before = Vec::<String>::new();
    for version in history.versions() {
        let all = version["status"]["conditions"].as_array().into_iter().flatten();
        let now: Vec<_> = all.map(|it| it["type"].as_str().unwrap().to_owned()).collect();
        let lost: Vec<_> = before.iter().filter(|kind| !now.contains(kind)).collect();
        assert!(lost.is_empty(), "{lost:?} are lost in {version:#}");
        before = now;
    }
    assert!(
        before.iter().any(|kind| kind == HEALTHY)
            && before.iter().any(|kind| kind == INFRASTRUCTURE)
    );
    assert!(!stage.run("get events -n default").contains("ConditionOwnedByOther"));
}

/// Ends the product; the Leases of shards are not in its rights.
async fn end(manager: Process) {
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
    assert!(!manager.has_said("Missing permission"), "{:?}", manager.lines());
}

/// rule:a-shared-status-is-shared
#[tokio::test(flavor = "multi_thread")]
async fn both_groups_keep_the_conditions_of_each_other_on_one_cluster() {
    let Some(stage) = Stage::set().await else { return };
    let member = member().await;
    let manager = start(&stage, "standalone");
    let history = History::begin(stage.plane.client().await, CLUSTERS, "one");
    keeps_all(&stage, &member, scene::cluster("one"), history).await;
    end(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn core_and_both_groups_keep_the_conditions_of_each_other_on_one_cluster() {
    let Some(stage) = CoreStage::set().await else { return };
    let member = member().await;
    let manager = start(&stage, "provider");
    let history = stage.history(CLUSTERS, "one").await;
    keeps_all(&stage, &member, core_stage::cluster("one"), history).await;
    end(manager).await;
}
