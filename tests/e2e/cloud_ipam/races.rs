//! The CloudAllocator behind a proxy that breaks things: no pod CIDR twice, none lost.

use http::Method;
use tests::fault_proxy::Canned;
use tests::nodes::delete_node;
use tests::{Cut, Fault, Match};

use crate::scene::{Scene, ZONE, alias, mk_vm_node};

const KIND: &str = "CloudAllocator";

fn patch_of(node: &str) -> Match {
    Match::node_patches().path(&format!("/api/v1/nodes/{node}"))
}

/// `rule:unknown-outcome-ends`
#[tokio::test(flavor = "multi_thread")]
async fn answers_of_the_api_server_that_are_lost_or_wrong_are_survived() {
    let scene = Scene::set().await;
    let manager = scene.start(KIND, "").await;
    let faults = [
        Fault::LoseAnswer(Cut::Connection),
        Fault::Reset(Cut::Stream),
        Fault::status(500),
        Fault::ReplaceAnswer(Canned::status(504)),
        Fault::status(429),
    ];
    for (index, fault) in faults.into_iter().enumerate() {
        let (name, case) = (format!("n-{index}"), format!("{fault:?}"));
        let rule = scene.proxy.on(patch_of(&name)).times(1).then(fault);
        mk_vm_node(&scene.stub, ZONE, &name, &[&alias(index)]).create(&scene.client).await;
        assert_eq!(scene.assigned(&name).await, [alias(index)], "{case}");
        scene.ready(&name).await;
        assert_eq!(rule.hits(), 1, "{case}");
        let events = scene.events(&name, "CIDRAssignmentFailed").await;
        assert!(events.is_empty(), "nothing was refused, {case}: {events:?}");
    }
    scene.end(&manager).await;
}

/// `rule:block-has-one-holder`
#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_the_cloud_gives_to_the_next_vm_waits_for_the_old_node_to_go() {
    let scene = Scene::set().await;
    let manager = scene.start(KIND, "").await;
    mk_vm_node(&scene.stub, ZONE, "old", &["10.0.1.0/24"]).create(&scene.client).await;
    scene.assigned("old").await;
    // The VM is gone and its range given to another, while its Node is still there.
    scene.stub.remove_vm(ZONE, "old");
    mk_vm_node(&scene.stub, ZONE, "new", &["10.0.1.0/24"]).create(&scene.client).await;
    let event = scene.event("new", "CIDRAssignmentFailed").await;
    assert!(event.message.unwrap().contains("Node old still has it"));
    assert!(scene.nodes.now().cidrs("new").is_empty());
    delete_node(&scene.client, "old").await;
    assert_eq!(scene.assigned("new").await, ["10.0.1.0/24"]);
    scene.end(&manager).await;
}

/// A VM that is created again with its old name: the range of the old Node is not written to the new VM.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_back_under_its_name_gets_what_its_new_vm_has() {
    let scene = Scene::set().await;
    let manager = scene.start(KIND, "").await;
    let held = scene.proxy.on(patch_of("a")).times(1).hold();
    mk_vm_node(&scene.stub, ZONE, "a", &["10.0.1.0/24"]).create(&scene.client).await;
    held.arrived(1).await;
    delete_node(&scene.client, "a").await;
    mk_vm_node(&scene.stub, ZONE, "a", &["10.0.2.0/24"]).create(&scene.client).await;
    held.release();
    assert_eq!(scene.assigned("a").await, ["10.0.2.0/24"]);
    let patches = scene.proxy.requests_like(&patch_of("a"));
    let uids: Vec<_> =
        patches.iter().map(|seen| seen.request.json()["metadata"]["uid"].clone()).collect();
    assert_ne!(uids.first(), uids.last(), "the first was for the Node that is gone");
    assert!(patches.iter().all(|seen| seen.request.method == Method::PATCH));
    scene.end(&manager).await;
}
