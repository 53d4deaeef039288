//! Clusters move over from upstream's AWS provider: what it has made, as recorded by `core_upstream.rs`, is adopted,
//! kept, changed and deleted.

use serde_json::{Value, json};
use tests::Process;
use tests::aws_proxy::Call;

use crate::aws_ownership_cases::ADOPT;
use crate::aws_recording::{Ids, Recording};
use crate::aws_stage::{REGION, Stage, is_ready};
use crate::scene::{CLUSTERS as OLDER_CLUSTERS, condition};

const CLUSTERS: &str = "clusters.v1beta2.cluster.x-k8s.io";
const AWS_CLUSTERS: &str = "awsclusters.v1beta2.infrastructure.cluster.x-k8s.io";
/// The adoption is silent for so many passes.
const PASSES: u32 = 10;

/// Creates the objects of a recording, as a backup has them.
async fn enter(stage: &Stage, recording: &Recording, ids: &Ids) {
    let text = ids.show(&serde_json::to_string(&recording.objects).unwrap());
    let mut objects: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut uid = Value::Null;
    for object in &mut objects {
        let (kind, name) =
            (object["kind"].clone(), object["metadata"]["name"].as_str().unwrap().to_owned());
        let is_cluster = kind == "Cluster";
        if !is_cluster {
            object["metadata"]["ownerReferences"][0]["uid"] = uid.clone();
        }
        let status = object["status"].take();
        stage.create(object);
        let kind = if is_cluster { CLUSTERS } else { AWS_CLUSTERS };
        stage.patch_status(&format!("{kind} {name}"), &status);
        uid = stage.find(kind, &name).await.unwrap()["metadata"]["uid"].clone();
    }
}

/// Has the product reconcile an object so many times.
async fn passes(stage: &Stage, manager: &Process, name: &str, number: u32) {
    let queue = [("name", "awsclusters")];
    let looked = "workqueue_work_duration_seconds_count";
    for _ in 0..number {
        let now = manager.metric(looked, &queue).await.unwrap_or_default();
        stage.run(&format!("annotate {AWS_CLUSTERS} {name} --overwrite example.org/pass={now}"));
        manager.until_metric(looked, &queue, |count| count > now).await;
    }
}

/// A private subnet with this CIDR.
fn subnet(cidr: &str) -> Value {
    json!({"id": "more", "cidrBlock": cidr, "availabilityZone": format!("{REGION}a")})
}

async fn moves_over(name: &str, more: Value) {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let recording = Recording::read(name);
    let ids = recording.replay(stage.proxy.upstream()).await;
    let made = stage.added(&before).await;
    enter(&stage, &recording, &ids).await;

    let manager = stage.start_with_aws("--aws-idle-read-qps=1000");
    let vpc = ids.of("<vpc 1>");
    let message = format!(
        "{vpc} has the tag of this cluster but no owner-id: set the annotation {ADOPT}=true to adopt it, or \
         remove the tag"
    );
    let is_refused = |it: &Value| condition(it, "VpcReady")["message"] == *message;
    stage.until(AWS_CLUSTERS, name, "is not adopted", is_refused).await;
    passes(&stage, &manager, name, 3).await;
    assert_eq!(stage.writes(), [""; 0], "without the annotation");
    assert_eq!(
        stage.find(AWS_CLUSTERS, name).await.unwrap()["status"]["ready"],
        true,
        "it is still there"
    );

    let of = format!("{AWS_CLUSTERS} {name}");
    stage.run(&format!("annotate {of} {ADOPT}=true"));
    let is_adopted = |it: &Value| is_ready(it) && condition(it, "Ready")["status"] == "True";
    let adopted = stage.until(AWS_CLUSTERS, name, "is adopted", is_adopted).await;
    passes(&stage, &manager, name, 3).await;
    let calls = stage.proxy.calls();
    let is_other = |call: &&Call| call.is_write() && !call.action.contains("Tags");
    let others: Vec<_> = calls.iter().filter(is_other).collect();
    assert!(others.is_empty(), "an adoption writes tags alone: {others:#?}");
    assert_eq!(stage.added(&before).await, made);

    stage.proxy.forget();
    passes(&stage, &manager, name, PASSES).await;
    assert_eq!(stage.writes(), [""; 0], "nothing is left to write");

    let mut subnets = adopted["spec"]["network"]["subnets"].clone();
    subnets.as_array_mut().unwrap().push(more);
    stage.patch(&of, "merge", &json!({"spec": {"network": {"subnets": subnets}}}));
    let mut wanted = made.clone();
    for kind in ["Subnets", "RouteTables"] {
        *wanted.get_mut(kind).unwrap() += 1;
    }
    stage.until_added(&before, &wanted).await;

    stage.run(&format!("delete {OLDER_CLUSTERS} {name} --wait=false"));
    stage.until_gone(AWS_CLUSTERS, name).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_a_classic_load_balancer_moves_over() {
    moves_over("classic", subnet("10.0.48.0/24")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_a_network_load_balancer_moves_over() {
    moves_over("network", subnet("10.1.9.0/24")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dual_stack_cluster_moves_over() {
    let mut more = subnet("10.0.48.0/24");
    more["isIpv6"] = true.into();
    moves_over("dual-stack", more).await;
}
