//! Leaders that end between the two halves of IPAMFromCluster's work: the alias of the VM, and the
//! pod CIDR of the Node.

use std::time::{Duration, Instant};

use http::Method;
use tests::control_plane::MANAGER_USER;
use tests::nodes::delete_node;
use tests::{FaultProxy, Match, PATIENCE, Wire, eventually};

use crate::scene::{Scene, ZONE, mk_vm_node};

const KIND: &str = "IPAMFromCluster";
const POOL: &str = "--cluster-cidr=10.0.0.0/22";
const LEASE: &str = "--leader-elect-lease-duration=6s --leader-elect-renew-deadline=5s \
     --leader-elect-retry-period=500ms --cluster-cidr=10.0.0.0/22";
const WRITE: &str = "instances.updateNetworkInterface";

/// No alias is of two VMs, and each is the pod CIDR of its Node.
async fn aliases_are_those_of_nodes(scene: &Scene, names: &[&str]) {
    let mut all = Vec::new();
    for name in names {
        let cidrs = scene.assigned(name).await;
        assert_eq!(scene.stub.aliases(ZONE, name), cidrs, "{name}");
        all.extend(cidrs);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), names.len(), "{all:?}");
}

/// `rule:reserved-block-is-kept`
#[tokio::test(flavor = "multi_thread")]
async fn an_ex_leader_writes_nothing_and_what_it_left_half_done_waits_for_the_operator_alone() {
    let scene = Scene::set().await;
    let first = scene.launch(scene.proxy.kubeconfig(), KIND, LEASE);
    first.line("Controller starting...").await;
    let wire = Wire::of_this_test();
    let other = FaultProxy::start_with(wire, &scene.cluster, MANAGER_USER, &[]).await;
    let second = scene.launch(other.kubeconfig(), KIND, LEASE);
    second.line("New leader elected").await;
    let of_half = Match::node_patches().path("/api/v1/nodes/half");
    let held = scene.proxy.on(of_half).hold();
    mk_vm_node(&scene.stub, ZONE, "half", &[]).create(&scene.client).await;
    held.arrived(1).await;
    first.pause();
    let left = scene.stub.aliases(ZONE, "half");
    assert_eq!(left, ["10.0.0.0/24"], "the first half");

    scene.event("half", "CloudCIDRAllocatorInvalidMode").await;
    for name in ["a", "b", "c"] {
        mk_vm_node(&scene.stub, ZONE, name, &[]).create(&scene.client).await;
    }
    aliases_are_those_of_nodes(&scene, &["a", "b", "c"]).await;
    assert_eq!(scene.stub.aliases(ZONE, "half"), left, "it is not for us to take it away");
    assert!(scene.nodes.now().cidrs("half").is_empty());
    let usage = "node_ipam_controller_cidrset_usage_cidrs";
    second.until_metric(usage, &[], |share| (share - 1.0).abs() < 1e-6).await;
    second.until_metric("node_ipam_pending_nodes", &[], |nodes| (nodes - 1.0).abs() < 0.1).await;

    let (writes, woken) = (scene.stub.count(WRITE), Instant::now());
    first.resume();
    assert_eq!(first.exit(PATIENCE).await.code(), Some(1));
    let written = Match::any()
        .and(|request| request.method != Method::GET && !request.path.contains("/events"));
    let written = scene.proxy.requests_like(&written);
    let late: Vec<_> = written.iter().filter(|seen| seen.arrived >= woken).collect();
    assert!(late.is_empty(), "written after the end of its lease: {late:?}");
    assert_eq!(scene.stub.count(WRITE), writes);

    // The operator does what the documentation says.
    scene.stub.set_aliases(ZONE, "half", &[]);
    aliases_are_those_of_nodes(&scene, &["a", "b", "c", "half"]).await;
    delete_node(&scene.client, "c").await;
    second.until_metric(usage, &[], |share| (share - 0.75).abs() < 1e-6).await;
    second.terminate();
    assert!(second.exit(PATIENCE).await.success());
    scene.check(&second, &[&other]);
}

/// `rule:begun-alias-is-finished`
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_asked_to_stop_between_alias_and_pod_cidr_finishes_both() {
    let scene = Scene::set().await;
    let manager = scene.start(KIND, POOL).await;
    mk_vm_node(&scene.stub, ZONE, "ready", &[]).create(&scene.client).await;
    scene.ready("ready").await;
    // The write, and two looks at what becomes of it.
    scene.stub.delay(Duration::from_millis(500));
    mk_vm_node(&scene.stub, ZONE, "a", &[]).create(&scene.client).await;
    eventually("the alias is asked for", || scene.stub.count(WRITE) == 2).await;
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
    aliases_are_those_of_nodes(&scene, &["ready", "a"]).await;
    scene.check(&manager, &[]);
}
