//! The CloudAllocator: what the cloud has given a VM becomes the pod CIDR of its Node.

use std::time::Duration;

use gce_stub::{Fault, GceStub};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tests::{create_nodes, eventually, mk_node};

use crate::scene::{Scene, ZONE, alias, mk_vm_node};

const KIND: &str = "CloudAllocator";

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_nodes_of_a_zone_cost_one_list_and_each_gets_the_alias_of_its_vm() {
    let scene = Scene::set().await;
    let nodes = (0..100).map(|index| {
        let node = mk_vm_node(&scene.stub, ZONE, &format!("n-{index}"), &[&alias(index)]);
        if index % 2 == 0 { node.condition("NetworkUnavailable", "True") } else { node }
    });
    create_nodes(&scene.client, nodes.collect::<Vec<_>>()).await;
    let manager = scene.start(KIND, "").await;
    let now = scene.nodes.until("all have a pod CIDR", |now| now.assigned() == 100).await;
    for index in 0..100 {
        assert_eq!(now.cidrs(&format!("n-{index}")), [alias(index)]);
    }
    for index in 0..100 {
        scene.ready(&format!("n-{index}")).await;
    }
    let calls = (scene.stub.count("instances.list"), scene.stub.count("instances.get"));
    assert_eq!(calls, (1, 0), "one list for all of them");
    // Who is settled costs nothing more, however often its kubelet says that it lives.
    let patches = scene.proxy.node_patches().len();
    let beat = Patch::Merge(json!({"metadata": {"labels": {"beat": "1"}}}));
    let api = Api::<k8s_openapi::api::core::v1::Node>::all(scene.client.clone());
    api.patch("n-0", &PatchParams::default(), &beat).await.unwrap();
    create_nodes(&scene.client, [mk_vm_node(&scene.stub, ZONE, "last", &["10.9.0.0/24"])]).await;
    assert_eq!(scene.assigned("last").await, ["10.9.0.0/24"]);
    scene.ready("last").await;
    let more = scene.proxy.node_patches().len() - patches;
    assert_eq!(more, 1, "one PATCH for one Node");
    manager.until_metric("node_ipam_pending_nodes", &[], |nodes| nodes == 0.0).await;
    manager.until_metric("node_ipam_conflicts", &[], |pairs| pairs == 0.0).await;
    let labels = [("call", "instances.list"), ("code", "200")];
    manager.until_metric("node_ipam_cloud_requests_total", &labels, |count| count >= 1.0).await;
    let dropped = manager.metric("workqueue_dropped_objects", &[("name", "cloudCIDRAllocator")]);
    assert_eq!(dropped.await, Some(0.0));
    scene.end(&manager).await;
}

/// `rule:google-is-called-within-limits`
#[tokio::test(flavor = "multi_thread")]
async fn of_many_zones_no_more_than_32_vms_are_asked_for_at_once() {
    let scene = Scene::set().await;
    scene.stub.delay(Duration::from_millis(400));
    let nodes = (0..90).map(|index| {
        let zone = format!("zone-{}", index % 9);
        mk_vm_node(&scene.stub, &zone, &format!("n-{index}"), &[&alias(index)])
    });
    create_nodes(&scene.client, nodes.collect::<Vec<_>>()).await;
    let manager = scene.start(KIND, "").await;
    scene.nodes.until("all have a pod CIDR", |now| now.assigned() == 90).await;
    assert_eq!(scene.stub.count("instances.list"), 0, "ten of a zone are not many");
    let at_once = scene.stub.most_at_once();
    assert!((16..=32).contains(&at_once), "{at_once} at once");
    scene.end(&manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_outages_and_tokens_that_end_are_survived_in_silence() {
    let scene = Scene::set().await;
    let manager = scene.start(KIND, "").await;
    for (index, fault) in [
        Fault::Status(403, "rateLimitExceeded"),
        Fault::Status(403, "quotaExceeded"),
        Fault::RetryAfter(1),
        Fault::Status(503, "backendError"),
        Fault::Cut,
    ]
    .into_iter()
    .enumerate()
    {
        scene.stub.fail("instances.get", 1, fault);
        scene.stub.expire_tokens();
        let name = format!("n-{index}");
        create_nodes(&scene.client, [mk_vm_node(&scene.stub, ZONE, &name, &[&alias(index)])]).await;
        assert_eq!(scene.assigned(&name).await, [alias(index)], "{fault:?}");
        scene.ready(&name).await;
        for reason in ["CIDRNotAvailable", "CIDRAssignmentFailed"] {
            assert!(scene.events(&name, reason).await.is_empty(), "{fault:?}: {reason}");
        }
    }
    scene.end(&manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_different_ranges_are_reported_and_used_once_they_exist() {
    let scene = Scene::set().await;
    let node = mk_node("differs").cidr("10.0.1.0/24").condition("NetworkUnavailable", "True");
    scene.stub.add_vm(ZONE, "differs", &["10.0.2.0/24"]);
    node.provider_id(&GceStub::provider_id(ZONE, "differs")).create(&scene.client).await;
    mk_vm_node(&scene.stub, ZONE, "late-alias", &[]).create(&scene.client).await;
    let late_vm = mk_node("late-vm").provider_id(&GceStub::provider_id(ZONE, "late-vm"));
    late_vm.create(&scene.client).await;
    mk_node("late-id").create(&scene.client).await;
    let garbage = mk_node("garbage").provider_id("gce://another-project/z/i");
    garbage.create(&scene.client).await;
    let manager = scene.start(KIND, "").await;
    let event = scene.event("differs", "CloudCIDRAllocatorMismatch").await;
    let message = event.message.unwrap();
    assert!(message.contains("10.0.1.0/24") && message.contains("10.0.2.0/24"), "{message}");
    scene.event("late-alias", "CIDRNotAvailable").await;
    scene.event("late-vm", "CIDRNotAvailable").await;
    scene.stub.set_aliases(ZONE, "late-alias", &["10.0.3.0/24"]);
    scene.stub.add_vm(ZONE, "late-vm", &["10.0.4.0/24"]);
    scene.stub.add_vm(ZONE, "late-id", &["10.0.5.0/24"]);
    let id = json!({"spec": {"providerID": GceStub::provider_id(ZONE, "late-id")}});
    let api = Api::<k8s_openapi::api::core::v1::Node>::all(scene.client.clone());
    api.patch("late-id", &PatchParams::default(), &Patch::Merge(id)).await.unwrap();
    for (name, cidr) in
        [("late-alias", "10.0.3.0/24"), ("late-vm", "10.0.4.0/24"), ("late-id", "10.0.5.0/24")]
    {
        assert_eq!(scene.assigned(name).await, [cidr], "{name}");
        scene.ready(name).await;
    }
    assert_eq!(scene.network("differs").await, "True", "it was not touched");
    assert!(scene.events("late-id", "CIDRNotAvailable").await.is_empty(), "it was not known");
    eventually("the log names the other project", || manager.has_said("another-project")).await;
    assert!(scene.stub.calls().iter().all(|call| !call.path.contains("another-project")));
    scene.end(&manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_families_are_given_in_the_order_of_the_services() {
    let scene = Scene::set().await;
    mk_vm_node(&scene.stub, ZONE, "a", &["10.0.1.0/24"]).create(&scene.client).await;
    scene.stub.set_ipv6(ZONE, "a", "fd20:1:2:3::5:0");
    let manager = scene.start(KIND, "--service-cluster-ip-range=fd00::/112,10.96.0.0/16").await;
    assert_eq!(scene.assigned("a").await, ["fd20:1:2:3::5:0/112", "10.0.1.0/24"]);
    scene.end(&manager).await;
}

/// `rule:unselected-nodes-get-nothing`
#[tokio::test(flavor = "multi_thread")]
async fn the_vm_of_a_node_that_is_not_selected_is_not_read() {
    for kind in ["CloudAllocator", "IPAMFromCloud"] {
        let scene = Scene::set().await;
        let pool = if kind == KIND { "" } else { "--cluster-cidr=10.0.0.0/8" };
        let manager = scene.start(kind, &format!("--node-selector=!host {pool}")).await;
        let other = mk_vm_node(&scene.stub, "zone-b", "other", &["10.9.1.0/24"]);
        create_nodes(&scene.client, [other.label("host", "")]).await;
        let ours = mk_vm_node(&scene.stub, ZONE, "ours", &["10.9.2.0/24"]);
        create_nodes(&scene.client, [ours]).await;
        assert_eq!(scene.assigned("ours").await, ["10.9.2.0/24"], "{kind}");
        assert!(scene.nodes.now().cidrs("other").is_empty(), "{kind}");
        let calls = scene.stub.calls();
        assert!(calls.iter().any(|call| call.path.contains(ZONE)), "{kind}");
        assert!(calls.iter().all(|call| !call.path.contains("zone-b")), "{kind}");
        scene.end(&manager).await;
    }
}
