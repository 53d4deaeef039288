//! Another program assigns CIDRs, too: what it sets first is adopted, and what it breaks is
//! reported, not repaired (`rule:foreign-value-is-adopted`).

use tests::nodes::set_cidrs;
use tests::{Process, mk_node};

use crate::scene::{Scene, patch_of, settled, until_used};

const POOL: &str = "10.0.0.0/22";

async fn begin() -> (Scene, Process) {
    let scene = Scene::set().await;
    let manager = scene.start(&format!("--cluster-cidr={POOL}")).await;
    (scene, manager)
}

async fn until_foreign(manager: &Process, count: f64) {
    let metric = "node_ipam_foreign_assignments_total";
    manager.until_metric(metric, &[], |now| (now - count).abs() < 0.1).await;
}

async fn until_conflicts(manager: &Process, pairs: f64) {
    let metric = "node_ipam_conflicts";
    manager.until_metric(metric, &[], |now| (now - pairs).abs() < 0.1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_set_before_our_patch_arrives_is_adopted_and_our_block_freed() {
    let (scene, manager) = begin().await;
    let hold = scene.proxy.on(patch_of("a")).times(1).hold();
    mk_node("a").create(&scene.client).await;
    hold.arrived(1).await;
    // Only the answer tells: the watch lags.
    scene.proxy.watches("/api/v1/nodes").stall();
    set_cidrs(&scene.client, "a", &["10.0.2.0/24"]).await.unwrap();
    hold.release();
    until_foreign(&manager, 1.0).await;
    scene.proxy.watches("/api/v1/nodes").resume();
    settled(&manager).await;
    until_used(&manager, POOL, 1.0).await;
    let settled = || scene.patches("a").iter().all(|patch| patch.settled.is_some());
    tests::eventually("the PATCH is answered", settled).await;
    let patches = scene.patches("a");
    assert_eq!((patches.len(), patches[0].upstream_status), (1, Some(422)), "never fought");
    assert_eq!(scene.nodes.now().cidrs("a"), ["10.0.2.0/24"]);
    // Round the pool: theirs is taken, ours is free again.
    assert_eq!(scene.add("b").await, ["10.0.1.0/24"]);
    assert_eq!(scene.add("c").await, ["10.0.3.0/24"]);
    assert_eq!(scene.add("d").await, ["10.0.0.0/24"]);
    scene.starves("e").await;
    assert!(scene.events("a", "CIDRAssignmentFailed").await.is_empty());
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_that_a_foreign_writer_made_is_reported_and_not_repaired() {
    let (scene, manager) = begin().await;
    let hold = scene.proxy.on(patch_of("a")).times(1).hold();
    mk_node("a").create(&scene.client).await;
    hold.arrived(1).await;
    // Too late to call back what is on its way.
    mk_node("theirs").cidr("10.0.0.0/24").create(&scene.client).await;
    until_conflicts(&manager, 1.0).await;
    hold.release();
    assert_eq!(scene.assigned("a").await, ["10.0.0.0/24"]);
    for (node, other) in [("a", "theirs"), ("theirs", "a")] {
        let event = scene.event(node, "PodCIDRConflict").await;
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        let message = event.message.unwrap_or_default();
        assert!(message.contains(other) && message.contains("10.0.0.0/24"), "{message}");
    }
    settled(&manager).await;
    assert_eq!(scene.patches("a").len(), 1);
    assert!(scene.patches("theirs").is_empty());
    assert_eq!(scene.nodes.now().cidrs("theirs"), ["10.0.0.0/24"]);
    until_conflicts(&manager, 1.0).await;
    scene.remove("a").await;
    until_conflicts(&manager, 0.0).await;
    until_used(&manager, POOL, 1.0).await;
    scene.end_with(&["a", "theirs"], &[]);
}
