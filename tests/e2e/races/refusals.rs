//! Answers that say for certain that nothing was written (`rule:answers-have-classes`).

use std::time::Duration;

use http::Method;
use kube::Api;
use kube::api::{Patch, PatchParams};
use tests::fault_proxy::{Canned, NodePatch};
use tests::{Fault, mk_node};

use crate::scene::{Scene, patch_of, settled};

/// The pauses between an answer and the next PATCH.
fn pauses(patches: &[NodePatch]) -> Vec<Duration> {
    let pairs = patches.windows(2);
    pairs.map(|pair| pair[1].arrived - pair[0].settled.expect("answered")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_is_followed_by_no_patch_before_its_retry_after_is_over() {
    let scene = Scene::set().await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/22").await;
    let busy = Canned::status(429).retry_after(2);
    let rule = scene.proxy.on(patch_of("a")).times(2).then(Fault::Answer(busy));
    mk_node("a").create(&scene.client).await;
    rule.hit(1).await;
    // A change of the Node is no reason to hurry.
    let nodes = Api::<k8s_openapi::api::core::v1::Node>::all(scene.client.clone());
    let label = Patch::Merge(serde_json::json!({"metadata": {"labels": {"changed": "true"}}}));
    nodes.patch("a", &PatchParams::default(), &label).await.unwrap();
    scene.add("b").await;
    assert_eq!(scene.assigned("a").await, ["10.0.0.0/24"]);
    settled(&manager).await;
    assert_eq!(scene.methods("a"), [Method::PATCH; 3], "nothing to read: it was not written");
    // The server has asked this client, so other Nodes wait as well.
    for others in [scene.patches("a"), [&scene.patches("a")[..1], &scene.patches("b")].concat()] {
        let pauses = pauses(&others);
        assert!(pauses.iter().all(|pause| *pause >= Duration::from_secs(2)), "{pauses:?}");
    }
    assert!(scene.events("a", "CIDRAssignmentFailed").await.is_empty());
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_patch_makes_one_event_and_is_tried_again() {
    let scene = Scene::set().await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/22").await;
    for code in [400, 422] {
        let node = format!("refused-{code}");
        let odd = Canned::status(code).because("Invalid", "a webhook does not like it");
        scene.proxy.on(patch_of(&node)).times(4).then(Fault::Answer(odd));
        scene.add(&node).await;
        settled(&manager).await;
        assert_eq!(scene.methods(&node), [Method::PATCH; 5], "refused four times");
        let event = scene.event(&node, "CIDRAssignmentFailed").await;
        let message = event.message.unwrap_or_default();
        assert!(message.contains("a webhook does not like it"), "{message}");
        assert_eq!(event.count, Some(1), "told once: {message}");
        assert_eq!(scene.events(&node, "CIDRAssignmentFailed").await.len(), 1);
    }
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_told_once_and_asked_for_again_after_five_seconds() {
    let scene = Scene::set().await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/22").await;
    scene.proxy.on(patch_of("a")).times(2).then(Fault::status(403));
    let cidrs = scene.add("a").await;
    settled(&manager).await;
    let patches = scene.patches("a");
    assert_eq!(patches.len(), 3);
    assert!(patches.iter().all(|patch| patch.pod_cidrs == cidrs), "{patches:?}");
    let pauses = pauses(&patches);
    assert!(pauses.iter().all(|pause| *pause >= Duration::from_secs(5)), "{pauses:?}");
    assert_eq!(scene.event("a", "CIDRAssignmentFailed").await.count, Some(1));
    scene.end();
}
