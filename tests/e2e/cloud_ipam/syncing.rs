//! IPAMFromCluster and IPAMFromCloud keep the pod CIDRs of Nodes and the alias ranges of VMs equal.

use gce_stub::{Fault, GceStub};
use tests::nodes::delete_node;
use tests::{create_nodes, mk_node};

use crate::scene::{Scene, ZONE, mk_vm_node};

const CLUSTER: &str = "--cluster-cidr=10.0.0.0/16 --service-cluster-ip-range=10.0.0.0/24";

const WRITE: &str = "instances.updateNetworkInterface";

/// `rule:reserved-block-is-kept`
#[tokio::test(flavor = "multi_thread")]
async fn from_cluster_every_node_gets_a_block_that_the_cloud_routes_whatever_fails_on_the_way() {
    let scene = Scene::set().await;
    scene.stub.add_vm(ZONE, "has", &[]);
    let has = mk_node("has").cidr("10.0.1.0/24");
    let id = GceStub::provider_id(ZONE, "has");
    has.provider_id(&id).create(&scene.client).await;
    mk_vm_node(&scene.stub, ZONE, "alias-alone", &["10.0.77.0/24"]).create(&scene.client).await;
    scene.stub.fail(WRITE, 1, Fault::Status(503, "backendError"));
    scene.stub.fail(WRITE, 1, Fault::Status(412, "conditionNotMet"));
    scene.stub.fail(WRITE, 1, Fault::LostAnswer);
    scene.stub.fail(WRITE, 1, Fault::Status(403, "rateLimitExceeded"));
    scene.stub.fail("zoneOperations.get", 2, Fault::Status(503, "backendError"));
    let manager = scene.start("IPAMFromCluster", CLUSTER).await;
    let names: Vec<_> = (0..6).map(|index| format!("n-{index}")).collect();
    let nodes = names.iter().map(|name| mk_vm_node(&scene.stub, ZONE, name, &[]));
    create_nodes(&scene.client, nodes.collect::<Vec<_>>()).await;
    for name in &names {
        let cidrs = scene.assigned(name).await;
        assert_eq!(scene.stub.aliases(ZONE, name), cidrs, "{name}");
        scene.ready(name).await;
    }
    scene.ready("has").await;
    assert_eq!(scene.stub.aliases(ZONE, "has"), ["10.0.1.0/24"]);
    let event = scene.event("alias-alone", "CloudCIDRAllocatorInvalidMode").await;
    assert!(event.message.unwrap().contains("IPAMFromCluster"));
    assert!(scene.nodes.now().cidrs("alias-alone").is_empty());
    // Service, "has", the alias alone and six more: none leaked by what failed.
    let usage = "node_ipam_controller_cidrset_usage_cidrs";
    manager.until_metric(usage, &[], |share| (share * 256.0 - 9.0).abs() < 1e-6).await;
    delete_node(&scene.client, "n-0").await;
    manager.until_metric(usage, &[], |share| (share * 256.0 - 8.0).abs() < 1e-6).await;
    scene.end(&manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_cloud_every_node_gets_the_alias_of_its_vm_and_differences_are_reported() {
    let scene = Scene::set().await;
    for (name, alias) in [("inside", "10.0.1.0/24"), ("outside", "10.9.0.0/24"), ("none", "")] {
        let aliases: Vec<_> = Some(alias).filter(|it| !it.is_empty()).into_iter().collect();
        mk_vm_node(&scene.stub, ZONE, name, &aliases).create(&scene.client).await;
    }
    scene.stub.add_vm(ZONE, "differs", &["10.0.3.0/24"]);
    let differs = mk_node("differs").cidr("10.0.4.0/24").condition("NetworkUnavailable", "True");
    let id = GceStub::provider_id(ZONE, "differs");
    differs.provider_id(&id).create(&scene.client).await;
    let manager = scene.start("IPAMFromCloud", CLUSTER).await;
    for (name, alias) in [("inside", "10.0.1.0/24"), ("outside", "10.9.0.0/24")] {
        assert_eq!(scene.assigned(name).await, [alias]);
        scene.ready(name).await;
    }
    scene.event("differs", "CloudCIDRAllocatorMismatch").await;
    let event = scene.event("none", "CloudCIDRAllocatorInvalidMode").await;
    assert_eq!(event.source.unwrap().component.as_deref(), Some("cloudCIDRAllocator"));
    scene.stub.set_aliases(ZONE, "none", &["10.0.2.0/24"]);
    assert_eq!(scene.assigned("none").await, ["10.0.2.0/24"]);
    assert_eq!(scene.network("differs").await, "True");
    assert_eq!(scene.stub.count(WRITE), 0, "nothing is written to the cloud");
    scene.end(&manager).await;
}

/// `rule:refused-block-is-changed`
#[tokio::test(flavor = "multi_thread")]
async fn from_cluster_a_block_that_google_has_given_to_a_vm_without_a_node_is_changed() {
    let scene = Scene::set().await;
    scene.stub.add_vm(ZONE, "no-node", &["10.0.1.0/24"]);
    let manager = scene.start("IPAMFromCluster", CLUSTER).await;
    mk_vm_node(&scene.stub, ZONE, "a", &[]).create(&scene.client).await;
    assert_eq!(scene.assigned("a").await, ["10.0.2.0/24"]);
    assert_eq!(scene.stub.aliases(ZONE, "a"), ["10.0.2.0/24"]);
    scene.ready("a").await;
    scene.event("a", "CIDRAssignmentFailed").await;
    scene.end(&manager).await;
}
