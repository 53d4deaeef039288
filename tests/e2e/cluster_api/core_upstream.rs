//! Upstream's AWS provider makes the clusters of `aws_moved.rs`, as they are recorded, and the product takes its place by
//! the steps of `deploy/clusterctl/README.md`.

use serde_json::{Value, json};
use tests::cluster_api_core::ClusterApiCore;
use tests::{PATIENCE, Process};

use crate::aws_ownership_cases::ADOPT;
use crate::aws_recording::Recording;
use crate::aws_stage::{REGION, is_ready, ours, spec};
use crate::core_stage::{AWS_CLUSTERS, CLUSTERS, CoreStage, cluster, is_provisioned};
use crate::scene::{INFRASTRUCTURE, OUR_KINDS, condition};

/// Writes what was made into the recordings.
const RECORD: &str = "UPSTREAM_RECORD";

async fn start(stage: &CoreStage, provider: &ClusterApiCore) -> Process {
    let url = stage.proxy.url();
    let services = ["ec2", "elasticloadbalancing", "sts", "tagging"];
    let services: Vec<_> = services.iter().map(|name| format!("{name}={url}")).collect();
    let endpoints = format!("--service-endpoints={REGION}:{}", services.join(","));
    let args = ["--feature-gates=EKS=false", "--sync-period=5s", "--v=4", &endpoints];
    let variables = [
        ("AWS_ACCESS_KEY_ID", "AKIATEST"),
        ("AWS_SECRET_ACCESS_KEY", "planted-secret"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ];
    let kubeconfig = stage.plane.admin_kubeconfig();
    provider.start_with(&kubeconfig, &args, &variables).await
}

/// The specs of the clusters, by name.
fn specs() -> [(&'static str, Value); 3] {
    let mut network = spec("10.1.1.0/24");
    network["network"].as_object_mut().unwrap().remove("natGateways");
    for (place, id) in ["public", "private"].into_iter().enumerate() {
        network["network"]["subnets"][place]["id"] = json!(id);
    }
    network["controlPlaneLoadBalancer"] = json!({"loadBalancerType": "nlb",
        "dnsResolutionCheck": "None", "additionalListeners": [{"port": 9345}]});
    let classic = json!({"region": REGION, "bastion": {"enabled": true},
        "controlPlaneLoadBalancer": {"dnsResolutionCheck": "None"}});
    let dual_stack = json!({"region": REGION, "network": {"vpc": {"ipv6": {}}},
        "controlPlaneLoadBalancer": {"loadBalancerType": "nlb", "dnsResolutionCheck": "None"}});
    [("classic", classic), ("network", network), ("dual-stack", dual_stack)]
}

/// An object as another API server takes it, without the pause in which it is recorded.
fn moved(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    let times = ["generation", "creationTimestamp", "managedFields"];
    for own in ["uid", "resourceVersion", "annotations"].into_iter().chain(times) {
        metadata.remove(own);
    }
    for owner in
        metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
    {
        owner["uid"] = json!("<owner>");
    }
    for of in [
        "/status/conditions",
        "/status/v1beta2/conditions",
        "/status/deprecated/v1beta1/conditions",
    ] {
        for condition in object.pointer_mut(of).and_then(Value::as_array_mut).into_iter().flatten()
        {
            condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        }
    }
    object
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn upstreams_provider_makes_the_recorded_clusters_and_the_product_takes_its_place() {
    let Some((stage, provider)) = CoreStage::set_upstream().await else { return };
    let before = stage.totals().await;
    let upstream = start(&stage, &provider).await;
    for (name, spec) in specs() {
        stage.proxy.forget();
        stage.create(&ours(name, &spec));
        stage.create(&cluster(name));
        stage.until(AWS_CLUSTERS, name, "is ready", |it| it["status"]["ready"] == true).await;
        let calls = stage.proxy.calls();
        let writes = calls.iter().filter(|call| call.is_write()).count();
        println!(
            "{name}: upstream's provider needs {} calls, {writes} of them writes",
            calls.len()
        );
        stage.until(CLUSTERS, name, "is provisioned", is_provisioned).await;
        // Upstream writes in each pass.
        stage.run(&format!("annotate {AWS_CLUSTERS} {name} cluster.x-k8s.io/paused="));
        let is_paused = |it: &Value| condition(it, "Paused")["status"] == "True";
        stage.until(AWS_CLUSTERS, name, "is paused", is_paused).await;
        let mut objects = Vec::new();
        for kind in [CLUSTERS, AWS_CLUSTERS] {
            objects.push(moved(stage.find(kind, name).await.unwrap()));
        }
        let recording = Recording::of(objects, &stage.proxy.done());
        if std::env::var_os(RECORD).is_some() {
            recording.write(name);
        }
        assert_eq!(recording.actions(), Recording::read(name).actions(), "{name}: see {RECORD}");
    }
    assert!(upstream.is_running());
    let manager = take_over(&stage, upstream).await;
    for (name, _) in specs() {
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
        stage.until_gone(AWS_CLUSTERS, name).await;
    }
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.finish(manager).await;
}

/// The product takes the place of upstream's provider, whose clusters are paused.
async fn take_over(stage: &CoreStage, upstream: Process) -> Process {
    upstream.terminate();
    upstream.exit(PATIENCE).await;
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let all = stage.run(&format!("get {kind} -o name"));
        for webhooks in all.lines().filter(|name| name.contains("cluster-api-provider-aws")) {
            stage.run(&format!("delete {webhooks}"));
        }
    }
    for kind in OUR_KINDS {
        stage.run(&format!("replace -f config/crd/{INFRASTRUCTURE}_{kind}.yaml"));
    }
    stage.await_crds();
    stage.proxy.forget();
    let manager = stage.product("");
    for (name, _) in specs() {
        let of = format!("{AWS_CLUSTERS} {name}");
        stage.run(&format!("annotate {of} {ADOPT}=true cluster.x-k8s.io/paused-"));
        let is_adopted = |it: &Value| is_ready(it) && condition(it, "Ready")["status"] == "True";
        stage.until(AWS_CLUSTERS, name, "is adopted", is_adopted).await;
    }
    let others: Vec<_> = stage.writes().into_iter().filter(|it| !it.contains("Tags")).collect();
    assert_eq!(others, [""; 0], "an adoption writes tags alone");
    manager
}
