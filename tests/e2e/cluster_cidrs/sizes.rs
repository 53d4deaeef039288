//! Block sizes of each family, and a CRD that has neither them nor a status.

use serde_json::json;
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::{Allocator, Observer};

use crate::scene::{KIND, MULTI, Scene, cluster_cidr, create, everybody, find, is_ready, start};

#[tokio::test(flavor = "multi_thread")]
async fn each_family_has_its_own_block_size() {
    let mut spec = everybody(&["10.0.0.0/16", "fd00::/56"], 8);
    spec["perNodeHostBitsIPv6"] = json!(64);
    let scene = Scene::begin(&[cluster_cidr("dual", &spec)], "").await;
    assert_eq!(scene.add("a", &[]).await, ["10.0.0.0/24", "fd00::/64"]);
    assert_eq!(scene.add("b", &[]).await, ["10.0.1.0/24", "fd00:0:0:1::/64"]);
    scene.end(&[]).await;
}

/// Makes the CRD of the cluster like that of upstream.
fn take_our_fields_away(hub: &Kubectl) {
    let version = "/spec/versions/0";
    let properties = format!("{version}/schema/openAPIV3Schema/properties");
    let removals = [
        format!("{version}/subresources"),
        format!("{properties}/status"),
        format!("{properties}/spec/x-kubernetes-validations"),
        format!("{properties}/spec/properties/perNodeHostBitsIPv4"),
        format!("{properties}/spec/properties/perNodeHostBitsIPv6"),
    ]
    .map(|path| json!({"op": "remove", "path": path}));
    hub.patch(&format!("crd {KIND}"), "json", &json!(removals));
}

/// `rule:draining-pool-gives-nothing`
#[tokio::test(flavor = "multi_thread")]
async fn a_crd_without_our_fields_gets_no_other_sizes_and_a_drain_is_reported_by_its_event() {
    let hub = Kubectl::without_crds().await;
    Allocator::MultiCidr.prepare(&hub.plane).await;
    take_our_fields_away(&hub);
    let client = hub.plane.client().await;
    let nodes = Observer::start(&client).await;
    hub.create(&cluster_cidr("kept", &everybody(&["10.9.0.0/16"], 8)));
    let flags = format!("{MULTI} --cluster-cidr=10.0.0.0/16,fd00::/56");
    let manager = start(&hub.plane.manager_kubeconfig(), &flags);
    manager.line("unknown field \\\"spec.perNodeHostBitsIPv6\\\"").await;
    assert!(find(&hub, "default-cluster-cidr").is_none());
    create(&client, "a", &[]).await;
    nodes.until("a has a pod CIDR", |now| now.cidrs("a") == ["10.9.0.0/24"]).await;

    hub.run(&format!("annotate {KIND} kept infra-controller-manager/drain=true"));
    hub.run("delete node a");
    poll("event PoolDrained", async || {
        let fields = "involvedObject.name=kept,reason=PoolDrained";
        let events = hub.object(&format!("events --field-selector {fields}"));
        (!events["items"].as_array().unwrap().is_empty()).then_some(())
    })
    .await;
    assert!(find(&hub, "kept").unwrap()["status"].is_null());

    hub.run("replace -f config/crd/networking.x-k8s.io_clustercidrs.yaml");
    poll("the object of the flags is ready", async || {
        find(&hub, "default-cluster-cidr").filter(is_ready)
    })
    .await;
    create(&client, "b", &[]).await;
    let both = ["10.0.0.0/24", "fd00::/64"];
    nodes.until("b has pod CIDRs", |now| now.cidrs("b") == both).await;
}
