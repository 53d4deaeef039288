//! A Node goes, or another takes its name, while a PATCH for it is on its way: the block never
//! reaches the wrong object and is never lost (`rule:patch-names-the-uid`).

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use tests::fault_proxy::Hold;
use tests::{Allocator, Process, eventually, mk_node};

use crate::scene::{Scene, patch_of, settled, until_used};

const POOL: &str = "10.0.0.0/23";

/// The first PATCH of `a` is on its way and does not arrive.
async fn patch_on_its_way(allocator: Allocator) -> (Scene, Process, Hold) {
    let scene = Scene::set_for(allocator).await;
    let manager = scene.start(&format!("--cluster-cidr={POOL}")).await;
    let hold = scene.proxy.on(patch_of("a")).times(1).hold();
    scene.mk_node("a").create(&scene.client).await;
    hold.arrived(1).await;
    until_used(&manager, POOL, 1.0).await;
    (scene, manager, hold)
}

/// The server's answer to the held PATCH.
async fn answer(scene: &Scene, hold: Hold) -> Option<u16> {
    hold.release();
    let held = || scene.patches("a").into_iter().next().expect("it has arrived");
    eventually("the held PATCH is answered", || held().settled.is_some()).await;
    held().upstream_status
}

#[tokio::test(flavor = "multi_thread")]
async fn the_block_of_a_node_that_is_deleted_during_allocation_is_freed() {
    for allocator in Allocator::ALL {
        block_of_a_deleted_node_is_freed(allocator).await;
    }
}

async fn block_of_a_deleted_node_is_freed(allocator: Allocator) {
    let (scene, manager, hold) = patch_on_its_way(allocator).await;
    scene.add("b").await;
    scene.starves("c").await;
    scene.remove("a").await;
    // The UID in the late PATCH keeps it from doing harm, so no Node has to wait for it.
    assert_eq!(scene.assigned("c").await, ["10.0.0.0/24"]);
    assert_eq!(answer(&scene, hold).await, Some(404));
    settled(&manager).await;
    until_used(&manager, POOL, 2.0).await;
    assert_eq!(scene.patches("a").len(), 1);
    assert!(scene.events("a", "CIDRAssignmentFailed").await.is_empty());
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_recreated_under_its_name_gets_its_own_block() {
    for allocator in Allocator::ALL {
        recreated_node_gets_its_own_block(allocator).await;
    }
}

async fn recreated_node_gets_its_own_block(allocator: Allocator) {
    let (scene, manager, hold) = patch_on_its_way(allocator).await;
    scene.remove("a").await;
    scene.mk_node("a").create(&scene.client).await;
    let code = answer(&scene, hold).await;
    assert!(matches!(code, Some(409 | 422)), "the uid protects the new Node: {code:?}");
    let cidrs = scene.assigned("a").await;
    settled(&manager).await;
    until_used(&manager, POOL, 1.0).await;
    let patches = scene.patches("a");
    assert_eq!(patches.len(), 2);
    assert_ne!(patches[0].uid, patches[1].uid);
    assert_eq!((&*patches[1].uid, &patches[1].pod_cidrs), (&*scene.nodes.now()["a"].uid, &cidrs));
    assert!(scene.events("a", "CIDRAssignmentFailed").await.is_empty());
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_recreated_with_cidrs_already_set_is_adopted() {
    let (scene, manager, hold) = patch_on_its_way(Allocator::Range).await;
    // The watch must not tell before the answer does.
    scene.proxy.watches("/api/v1/nodes").stall();
    scene.remove("a").await;
    mk_node("a").cidr("10.0.1.0/24").create(&scene.client).await;
    scene.assigned("a").await;
    let late = &scene.patches("a")[0];
    assert_both_causes(&scene, &late.uid, &late.pod_cidrs[0]).await;
    assert_eq!(answer(&scene, hold).await, Some(422));
    until_used(&manager, POOL, 0.0).await;
    scene.proxy.watches("/api/v1/nodes").resume();
    until_used(&manager, POOL, 1.0).await;
    settled(&manager).await;
    assert_eq!(scene.add("b").await, ["10.0.0.0/24"], "the block that was held for the old one");
    scene.starves("c").await;
    assert_eq!(scene.patches("a").len(), 1, "no PATCH may be sent for the new Node");
    assert!(scene.events("a", "CIDRAssignmentFailed").await.is_empty());
    scene.end();
}

/// Asserts why this case is hard: the server's answer names both the UID and the CIDRs.
async fn assert_both_causes(scene: &Scene, uid: &str, cidr: &str) {
    let body = serde_json::json!({
        "metadata": {"uid": uid}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
    });
    let nodes = Api::<Node>::all(scene.client.clone());
    let refused = nodes.patch("a", &PatchParams::default(), &Patch::Strategic(body)).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("not refused: {refused:?}") };
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    for field in ["metadata.uid", "spec.podCIDRs"] {
        assert!(causes.iter().any(|cause| cause.field == field), "no {field} in {causes:?}");
    }
}
