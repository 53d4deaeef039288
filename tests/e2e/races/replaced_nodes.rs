//! A Node goes, or another takes its name, while a PATCH for it is on its way: the block never
//! reaches the wrong object and is never lost (`rule:patch-names-the-uid`).

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use tests::fault_proxy::Hold;
use tests::{eventually, mk_node};

use crate::scene::{Scene, patch_of, settled, until_used};

/// Four blocks.
const POOL: &str = "10.0.0.0/22";

/// A new Node whose first PATCH is on its way and does not arrive.
async fn patch_on_its_way(scene: &Scene, node: &str) -> Hold {
    let hold = scene.proxy.on(patch_of(node)).times(1).hold();
    mk_node(node).create(&scene.client).await;
    hold.arrived(1).await;
    hold
}

/// The server's answer to the held PATCH.
async fn answer(scene: &Scene, node: &str, hold: Hold) -> Option<u16> {
    hold.release();
    let held = || scene.patches(node).into_iter().next().expect("it has arrived");
    eventually("the held PATCH is answered", || held().settled.is_some()).await;
    held().upstream_status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_patch_never_reaches_a_successor_of_the_name_and_its_block_is_freed() {
    let scene = Scene::set().await;
    let manager = scene.start(&format!("--cluster-cidr={POOL}")).await;

    // Deleted: the UID in the late PATCH keeps it from doing harm, so no Node has to wait for it.
    let hold = patch_on_its_way(&scene, "gone").await;
    for name in ["b", "c", "d"] {
        scene.add(name).await;
    }
    scene.starves("waiting").await;
    scene.remove("gone").await;
    assert_eq!(scene.assigned("waiting").await, ["10.0.0.0/24"]);
    assert_eq!(answer(&scene, "gone", hold).await, Some(404));
    settled(&manager).await;
    assert_eq!(scene.patches("gone").len(), 1);
    for name in ["b", "c", "d"] {
        scene.remove(name).await;
    }
    until_used(&manager, POOL, 1.0).await;

    // Made again without CIDRs: it gets a block of its own.
    let hold = patch_on_its_way(&scene, "empty").await;
    scene.remove("empty").await;
    mk_node("empty").create(&scene.client).await;
    let code = answer(&scene, "empty", hold).await;
    assert!(matches!(code, Some(409 | 422)), "the uid protects the new Node: {code:?}");
    let cidrs = scene.assigned("empty").await;
    settled(&manager).await;
    let patches = scene.patches("empty");
    assert_eq!(patches.len(), 2);
    assert_ne!(patches[0].uid, patches[1].uid);
    let uid = &*scene.nodes.now()["empty"].uid;
    assert_eq!((&*patches[1].uid, &patches[1].pod_cidrs), (uid, &cidrs));
    until_used(&manager, POOL, 2.0).await;

    // Made again with CIDRs: adopted. The watch must not tell before the answer does.
    let hold = patch_on_its_way(&scene, "full").await;
    let late = scene.patches("full").remove(0);
    let taken = [&late.pod_cidrs[0], &cidrs[0], "10.0.0.0/24"];
    let mut blocks = (0..4).map(|i| format!("10.0.{i}.0/24"));
    let block = blocks.find(|block| !taken.contains(&&**block)).expect("a fourth block");
    scene.proxy.watches("/api/v1/nodes").stall();
    scene.remove("full").await;
    mk_node("full").cidr(&block).create(&scene.client).await;
    scene.assigned("full").await;
    assert_both_causes(&scene, &late.uid, &late.pod_cidrs[0]).await;
    assert_eq!(answer(&scene, "full", hold).await, Some(422));
    until_used(&manager, POOL, 2.0).await;
    scene.proxy.watches("/api/v1/nodes").resume();
    until_used(&manager, POOL, 3.0).await;
    settled(&manager).await;
    assert_eq!(scene.add("next").await, late.pod_cidrs, "the block that was held for the old one");
    assert_eq!(scene.patches("full").len(), 1, "no PATCH may be sent for the new Node");
    for name in ["gone", "empty", "full"] {
        assert!(scene.events(name, "CIDRAssignmentFailed").await.is_empty(), "{name}");
    }
    scene.end();
}

/// Asserts why this case is hard: the server's answer names both the UID and the CIDRs.
async fn assert_both_causes(scene: &Scene, uid: &str, cidr: &str) {
    let body = serde_json::json!({
        "metadata": {"uid": uid}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
    });
    let nodes = Api::<Node>::all(scene.client.clone());
    let refused = nodes.patch("full", &PatchParams::default(), &Patch::Strategic(body)).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("not refused: {refused:?}") };
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    for field in ["metadata.uid", "spec.podCIDRs"] {
        assert!(causes.iter().any(|cause| cause.field == field), "no {field} in {causes:?}");
    }
}
