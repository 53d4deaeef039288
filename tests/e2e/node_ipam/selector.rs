//! `--node-selector`: which Nodes get a pod CIDR (`rule:unselected-nodes-get-nothing`).

use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use tests::nodes::names;
use tests::{create_nodes, mk_node};

use crate::story::Story;

async fn set_label(story: &Story, name: &str, value: Option<&str>) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"net": value}}}));
    let nodes = Api::<Node>::all(story.client.clone());
    nodes.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_selected_cost_one_patch_each_and_the_others_nothing() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/12 --node-selector=net=pods").await;
    let nodes = (names("ours", 300).map(|name| mk_node(name).label("net", "pods")))
        .zip(names("other", 300).map(|name| mk_node(name).label("net", "host")));
    create_nodes(&story.client, nodes.flat_map(|(ours, other)| [ours, other])).await;
    let now = story.nodes.until("300 are assigned", |now| now.assigned() == 300).await;
    assert!(names("other", 300).all(|name| now.cidrs(&name).is_empty()));
    // The last Node shows that the product has seen all before it.
    mk_node("last").label("net", "pods").create(&story.client).await;
    story.assigned("last").await;
    let metrics = story.manager.metrics().await;
    let patches = |class| metrics.value("node_ipam_patch_results_total", &[("class", class)]);
    assert_eq!(patches("done"), Some(301.0));
    for class in ["missing", "replaced", "taken", "rejected", "throttled", "ambiguous"] {
        assert_eq!(patches(class).unwrap_or_default().to_string(), "0", "{class}");
    }
    for state in ["pending", "starved", "reserved"] {
        let waiting = metrics.value("node_ipam_pending_nodes", &[("state", state)]);
        assert_eq!(waiting, Some(0.0), "{state}");
    }
    let adds = metrics.value("workqueue_adds_total", &[("name", "cidrallocator_node")]);
    assert_eq!(adds, Some(301.0), "no key of another Node");
    let events = Api::<Event>::all(story.client.clone()).list(&ListParams::default()).await;
    let of_nodes = events
        .unwrap()
        .items
        .into_iter()
        .filter(|event| event.involved_object.kind.as_deref() == Some("Node"));
    let told: Vec<_> = of_nodes.map(|event| (event.reason, event.message)).collect();
    assert_eq!(told, []);
    assert!(!story.manager.lines().iter().any(|line| line.contains("other-")), "no log line");
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_nodes_have_is_a_claim_and_only_overlaps_are_reported() {
    let mut story = Story::with_nodes(
        &[("stays", "10.0.0.0/24"), ("outside", "192.168.0.0/24")],
        "--cluster-cidr=10.0.0.0/22 --node-selector=net",
    )
    .await;
    mk_node("ours").label("net", "").create(&story.client).await;
    assert_eq!(story.assigned("ours").await, ["10.0.1.0/24"], "10.0.0.0/24 is a claim");
    story.add_foreign("twin", &["10.0.0.0/24"]).await;
    story.event("twin", "PodCIDRConflict").await;
    story.event("stays", "PodCIDRConflict").await;
    let events = tests::node_events::node_events(&story.client, "outside", "PodCIDROutOfRange");
    assert_eq!(events.await.len(), 0);
    assert_eq!(story.manager.metric("node_ipam_external_claims", &[]).await, Some(0.0));
    set_label(&story, "outside", Some("")).await;
    story.event("outside", "PodCIDROutOfRange").await;
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_served_when_it_starts_to_be_selected_and_leaves_the_line_when_it_stops() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/23 --node-selector=net").await;
    mk_node("late").create(&story.client).await;
    mk_node("first").label("net", "").create(&story.client).await;
    assert_eq!(story.assigned("first").await, ["10.0.0.0/24"]);
    assert!(story.nodes.now().cidrs("late").is_empty());
    set_label(&story, "late", Some("")).await;
    assert_eq!(story.assigned("late").await, ["10.0.1.0/24"]);
    for name in ["leaving", "waiting"] {
        mk_node(name).label("net", "").create(&story.client).await;
        story.event(name, "CIDRNotAvailable").await;
    }
    set_label(&story, "leaving", None).await;
    let starved = [("state", "starved")];
    story
        .manager
        .until_metric("node_ipam_pending_nodes", &starved, |now| (now - 1.0).abs() < 0.1)
        .await;
    // A Node that has its pod CIDR keeps it.
    set_label(&story, "late", None).await;
    story.remove("first").await;
    assert_eq!(story.assigned("waiting").await, ["10.0.0.0/24"], "leaving was first in line");
    assert_eq!(story.nodes.now().cidrs("late"), ["10.0.1.0/24"]);
    story.end();
}
