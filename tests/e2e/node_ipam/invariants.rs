//! The rules of node-ipam that show on a healthy API server; those that need a fault to show are in
//! the tests `races`.

use tests::nodes::{delete_node, drop_finalizers, names, set_cidrs};
use tests::{create_nodes, delete_nodes, mk_node};

use crate::story::Story;

/// `rule:block-has-one-holder`
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_come_and_go_never_share_a_block() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/18").await;
    create_nodes(&story.client, names("old", 60).map(mk_node)).await;
    for round in 0..4 {
        let prefix = format!("round-{round}");
        let coming = create_nodes(&story.client, names(&prefix, 20).map(mk_node));
        let going = delete_nodes(&story.client, names("old", 60).skip(round * 15).take(15));
        tokio::join!(coming, going);
    }
    // 64 blocks, 80 Nodes alive.
    story.nodes.until("the pool is used up", |now| now.assigned() == 64).await;
    story.end();
}

/// `rule:claim-outlives-refusal`
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_a_finalizer_keeps_alive_keeps_its_block() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/24").await;
    mk_node("kept").finalizer("example.com/keep").create(&story.client).await;
    let block = story.assigned("kept").await;
    delete_node(&story.client, "kept").await;
    story.starves("waiting").await;
    drop_finalizers(&story.client, "kept").await.unwrap();
    assert_eq!(story.assigned("waiting").await, block, "freed only with the object");
    story.end();
}

/// `rule:claim-outlives-refusal`
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_being_deleted_gets_no_block() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/24").await;
    story.add("first").await;
    mk_node("leaving").finalizer("example.com/keep").create(&story.client).await;
    story.event("leaving", "CIDRNotAvailable").await;
    delete_node(&story.client, "leaving").await;
    story.starves("second").await;
    story.remove("first").await;
    story.assigned("second").await;
    assert!(story.nodes.now().cidrs("leaving").is_empty(), "it was first in line");
    drop_finalizers(&story.client, "leaving").await.unwrap();
    story.end();
}

/// `rule:no-block-is-lost`
#[tokio::test(flavor = "multi_thread")]
async fn after_the_last_node_the_pool_is_back_at_its_baseline() {
    let mut story =
        Story::begin("--cluster-cidr=10.0.0.0/20 --service-cluster-ip-range=10.0.0.0/24").await;
    story.until_used("10.0.0.0/20", 1.0).await;
    create_nodes(&story.client, names("n", 18).map(mk_node)).await;
    story.nodes.until("the pool is full", |now| now.assigned() == 15).await;
    story.add_foreign("twin-1", &["10.0.5.0/24"]).await;
    story.add_foreign("twin-2", &["10.0.5.0/24"]).await;
    delete_nodes(&story.client, story.nodes.now().keys().map(ToString::to_string)).await;
    story.until_used("10.0.0.0/20", 1.0).await;
    story.manager.until_metric("node_ipam_conflicts", &[], |pairs| pairs == 0.0).await;
    assert!(story.manager.is_running());
}

/// `rule:a-bad-node-stops-only-itself`
#[tokio::test(flavor = "multi_thread")]
async fn bad_nodes_at_start_are_reported_and_others_are_served() {
    let mut story = Story::with_nodes(
        &[("outside", "192.168.7.0/24"), ("other-family", "fd00::/64"), ("odd", "10.0.0.0/28")],
        "--cluster-cidr=10.0.0.0/22",
    )
    .await;
    for name in ["outside", "other-family"] {
        let event = story.event(name, "PodCIDROutOfRange").await;
        assert_eq!(event.type_.as_deref(), Some("Warning"));
    }
    assert_eq!(story.manager.metric("node_ipam_external_claims", &[]).await, Some(2.0));
    assert_eq!(story.add("a").await, ["10.0.1.0/24"]);
    // The same while running.
    story.add_foreign("late", &["172.16.0.0/24", "fd01::/64"]).await;
    story.event("late", "PodCIDROutOfRange").await;
    assert_eq!(story.add("b").await, ["10.0.2.0/24"]);
    story.end();
}

/// `rule:a-bad-node-stops-only-itself`
#[tokio::test(flavor = "multi_thread")]
async fn duplicates_found_at_start_are_reported_and_freed_with_the_last_node() {
    let twins = [("twin-1", "10.0.0.0/24"), ("twin-2", "10.0.0.0/24")];
    let story = Story::with_nodes(&twins, "--cluster-cidr=10.0.0.0/23").await;
    for (name, other) in [("twin-1", "twin-2"), ("twin-2", "twin-1")] {
        let message = story.event(name, "PodCIDRConflict").await.message.unwrap_or_default();
        assert!(message.contains(other) && message.contains("10.0.0.0/24"), "{message}");
    }
    story.manager.until_metric("node_ipam_conflicts", &[], |pairs| (pairs - 1.0).abs() < 0.1).await;
    assert_eq!(story.add("a").await, ["10.0.1.0/24"]);
    story.starves("b").await;
    story.remove("twin-1").await;
    story.manager.until_metric("node_ipam_conflicts", &[], |pairs| pairs == 0.0).await;
    story.until_used("10.0.0.0/23", 2.0).await;
    story.remove("twin-2").await;
    assert_eq!(story.assigned("b").await, ["10.0.0.0/24"]);
}

/// `rule:list-before-allocate`
#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_existing_nodes_are_known_before_the_first_is_given_out() {
    let cluster = tests::cluster().await;
    let client = cluster.client().await;
    let nodes = tests::Observer::start(&client).await;
    let held = (0..200).map(|i| mk_node(format!("held-{i}")).cidr(&format!("10.0.{i}.0/24")));
    create_nodes(&client, held).await;
    create_nodes(&client, names("new", 56).map(mk_node)).await;
    let manager = crate::story::start(&cluster, "--cluster-cidr=10.0.0.0/16");
    nodes.until("all 256 have a block", |now| now.assigned() == 256).await;
    tests::assert_never_shared(&nodes.history(), &[]);
    drop(manager);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_served_without_another_event_on_it() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/24").await;
    story.add("a").await;
    story.starves("quiet").await;
    story.remove("a").await;
    story.assigned("quiet").await;
    let changes = story.nodes.history().iter().filter(|seen| &*seen.name == "quiet").count();
    assert_eq!(changes, 2, "created, assigned, and nothing else happened to it");
    story.end();
}

/// `rule:foreign-value-is-adopted`
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_somebody_else_sets_on_a_waiting_node_is_adopted() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/24").await;
    story.add("a").await;
    story.starves("b").await;
    set_cidrs(&story.client, "b", &["10.9.0.0/24"]).await.unwrap();
    let foreign = "node_ipam_foreign_assignments_total";
    story.manager.until_metric(foreign, &[], |count| (count - 1.0).abs() < 0.1).await;
    story.starves("c").await;
    story.remove("a").await;
    assert_eq!(story.assigned("c").await, ["10.0.0.0/24"], "b is no longer in line");
    assert_eq!(story.nodes.now().cidrs("b"), ["10.9.0.0/24"]);
    story.end();
}

/// `rule:cost-follows-claims`
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_2_to_the_64_blocks_costs_nothing() {
    let story = Story::begin(
        "--cluster-cidr=fd00::/16 --node-cidr-mask-size=80 --node-cidr-max-ipv6-bits=64",
    )
    .await;
    assert_eq!(story.add("a").await, ["fd00::/80"]);
    assert_eq!(story.add("b").await, ["fd00::1:0:0:0/80"]);
    let memory = story.manager.metric("process_resident_memory_bytes", &[]).await.unwrap();
    assert!(memory < 64e6, "{memory} bytes are resident");
    story.end();
}
