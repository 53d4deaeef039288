//! The watch breaks in every way it can, and what happened meanwhile is not lost; a list from the
//! past frees nothing (`rule:claim-outlives-refusal`).

use tests::fault_proxy::Watches;
use tests::nodes::delete_node;
use tests::{Fault, Match, Process, Wire};

use crate::scene::{Scene, settled, until_used};

const NODES: &str = "/api/v1/nodes";

/// One block, held by `a`, wanted by `b`: whether `b` gets it shows whether the end of `a` is
/// known.
async fn one_block(wire: Wire) -> (Scene, Process) {
    let scene = Scene::set_on(wire).await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/24").await;
    scene.add("a").await;
    scene.starves("b").await;
    settled_but_b(&manager).await;
    (scene, manager)
}

async fn settled_but_b(manager: &Process) {
    manager.until_metric("node_ipam_pending_nodes", &[], |nodes| (nodes - 1.0).abs() < 0.1).await;
}

/// The Node `a` is deleted while no watch is open.
async fn gap(wire: Wire, break_off: impl Fn(&Watches), reopening: Match) {
    let (scene, _manager) = one_block(wire).await;
    let hold = scene.proxy.on(reopening).hold();
    let watches = scene.proxy.watches(NODES);
    assert_eq!(watches.count(), 1, "one watch serves all");
    break_off(&watches);
    hold.arrived(1).await;
    scene.remove("a").await;
    assert!(scene.nodes.now().cidrs("b").is_empty());
    hold.release();
    assert_eq!(scene.assigned("b").await, ["10.0.0.0/24"]);
    scene.end();
}

/// The opening of a watch that goes on from a known version.
fn continued_watch() -> Match {
    Match::node_watches().and(|request| !request.is_watch_list())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_the_watch_is_closed_is_not_lost() {
    gap(Wire::ProtobufStreamed, Watches::close, Match::node_watches()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_the_watch_is_cut_off_is_not_lost() {
    gap(Wire::JsonPages, Watches::cut, Match::node_watches()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_410_in_the_watch_the_relist_shows_who_is_gone() {
    gap(Wire::ProtobufPages, Watches::expire, Match::node_lists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_410_at_the_opening_of_the_watch_the_relist_shows_who_is_gone() {
    let (scene, _manager) = one_block(Wire::ProtobufStreamed).await;
    let expired = scene.proxy.on(continued_watch()).times(1).then(Fault::status(410));
    let hold = scene.proxy.on(Match::node_lists()).hold();
    scene.proxy.watches(NODES).close();
    expired.hit(1).await;
    hold.arrived(1).await;
    scene.remove("a").await;
    hold.release();
    assert_eq!(scene.assigned("b").await, ["10.0.0.0/24"]);
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relist_answered_from_the_past_frees_no_block() {
    for wire in [Wire::ProtobufStreamed, Wire::JsonPages] {
        relist_from_the_past(wire).await;
    }
}

async fn relist_from_the_past(wire: Wire) {
    let scene = Scene::set_on(wire).await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/23").await;
    let empty = scene.proxy.snapshot(NODES).await;
    let held = scene.add("a").await;
    scene.add("c").await;
    scene.starves("b").await;
    settled_but_b(&manager).await;

    let past = scene.proxy.on(Match::node_lists()).times(1).then(Fault::Past(empty));
    let present = scene.proxy.on(Match::node_lists()).hold();
    scene.proxy.watches(NODES).expire();
    past.hit(1).await;
    // That the product lists once more shows what it thinks of the first list.
    present.arrived(1).await;
    let refused = [("reason", "past")];
    let metric = "icm_informer_watch_errors_total";
    manager.until_metric(metric, &refused, |count| count >= 1.0).await;
    until_used(&manager, "10.0.0.0/23", 2.0).await;
    assert!(scene.patches("b").is_empty(), "there was no block for it");
    // Meanwhile `a` goes, which the present must show.
    delete_node(&scene.client, "a").await;
    present.release();
    assert_eq!(scene.assigned("b").await, held);
    settled(&manager).await;
    scene.end();
}
