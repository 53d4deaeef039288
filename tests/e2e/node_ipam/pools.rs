//! Pools, masks and the order of blocks (`rule:blocks-are-next-fit`).

use std::time::{Duration, Instant};

use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_16_million_blocks_starts_at_once_and_skips_a_large_claim() {
    let story = Story::with_nodes(
        &[("large", "127.0.0.0/16")],
        "--cluster-cidr=127.0.0.0/8 --node-cidr-mask-size=32",
    )
    .await;
    story.until_used("127.0.0.0/8", 65536.0).await;
    assert_eq!(story.add("a").await, ["127.1.0.0/32"]);
    let memory = story.manager.metric("process_resident_memory_bytes", &[]).await.unwrap();
    assert!(memory < 64e6, "no memory for each block, but {memory} bytes are resident");
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_nodes_seen_by_list_and_watch_count_once() {
    let story = Story::with_nodes(
        &[("first", "10.10.0.0/24"), ("third", "10.10.2.0/24")],
        "--cluster-cidr=10.10.0.0/22",
    )
    .await;
    assert_eq!(story.add("a").await, ["10.10.1.0/24"]);
    assert_eq!(story.add("b").await, ["10.10.3.0/24"]);
    story.starves("c").await;
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_node_gets_the_block_that_is_freed() {
    let story = Story::begin("--cluster-cidr=127.123.234.0/28 --node-cidr-mask-size=30").await;
    for name in ["a", "b", "c", "d"] {
        story.add(name).await;
    }
    story.starves("x").await;
    assert_eq!(story.nodes.now().cidrs("b"), ["127.123.234.4/30"]);
    story.remove("b").await;
    assert_eq!(story.assigned("x").await, ["127.123.234.4/30"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freed_block_is_reused_last() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/22").await;
    assert_eq!(story.add("a").await, ["10.0.0.0/24"]);
    assert_eq!(story.add("b").await, ["10.0.1.0/24"]);
    assert_eq!(story.add("c").await, ["10.0.2.0/24"]);
    story.remove("a").await;
    assert_eq!(story.add("d").await, ["10.0.3.0/24"]);
    assert_eq!(story.add("e").await, ["10.0.0.0/24"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_added_and_put_in_another_order_at_a_restart_and_no_node_changes() {
    let mut story = Story::begin("--cluster-cidr=10.0.0.0/24").await;
    assert_eq!(story.add("a").await, ["10.0.0.0/24"]);
    story.starves("b").await;
    story.restart("--cluster-cidr=10.0.0.0/24 --additional-cluster-cidrs=10.9.0.0/23").await;
    assert_eq!(story.assigned("b").await, ["10.9.0.0/24"]);
    let other_order =
        "--cluster-cidr=10.9.0.0/23 --additional-cluster-cidrs=10.0.0.0/24,10.7.0.0/24";
    story.restart(other_order).await;
    assert_eq!(story.add("c").await, ["10.9.1.0/24"]);
    assert_eq!(story.add("d").await, ["10.7.0.0/24"]);
    story.remove("a").await;
    assert_eq!(story.add("e").await, ["10.0.0.0/24"]);
    assert_eq!(story.nodes.now().cidrs("b"), ["10.9.0.0/24"]);
    let external = story.manager.metric("node_ipam_external_claims", &[]).await;
    assert_eq!(external, Some(0.0));
    story.end();
}

/// `rule:freed-blocks-rest`
#[tokio::test(flavor = "multi_thread")]
async fn a_freed_block_rests_for_as_long_as_the_flag_says() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/24 --pod-cidr-reuse-delay=3s").await;
    assert_eq!(story.add("a").await, ["10.0.0.0/24"]);
    let removed = Instant::now();
    story.remove("a").await;
    story.manager.until_metric("node_ipam_resting_claims", &[], |resting| resting > 0.5).await;
    story.starves("b").await;
    assert_eq!(story.assigned("b").await, ["10.0.0.0/24"]);
    assert!(removed.elapsed() >= Duration::from_secs(3), "{:?}", removed.elapsed());
    story.manager.until_metric("node_ipam_resting_claims", &[], |resting| resting < 0.5).await;
    story.end();
}

/// `rule:no-block-is-lost`
#[tokio::test(flavor = "multi_thread")]
async fn a_node_gets_a_block_of_every_family_or_none() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/22,fd00::/63").await;
    assert_eq!(story.add("node1").await, ["10.0.0.0/24", "fd00::/64"]);
    assert_eq!(story.add("node2").await, ["10.0.1.0/24", "fd00:0:0:1::/64"]);
    let why = story.starves("node3").await;
    assert!(why.contains("fd00::/63"), "names the pool that is full: {why}");
    story.remove("node1").await;
    assert_eq!(story.assigned("node3").await, ["10.0.2.0/24", "fd00::/64"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_change_of_mask_no_block_overlaps_an_old_one() {
    let story = Story::with_nodes(
        &[("old-1", "192.168.0.0/24"), ("old-2", "192.168.1.0/24")],
        "--cluster-cidr=192.168.0.0/16 --node-cidr-mask-size=23",
    )
    .await;
    story.remove("old-2").await;
    assert_eq!(story.add("new").await, ["192.168.2.0/23"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_and_usage_count_blocks_under_a_large_claim() {
    let story = Story::with_nodes(&[("half", "10.0.0.0/17")], "--cluster-cidr=10.0.0.0/16").await;
    assert_eq!(story.add("a").await, ["10.0.128.0/24"]);
    let pool = [("clusterCIDR", "10.0.0.0/16")];
    let metrics = story.manager.metrics().await;
    let tries = "node_ipam_controller_cidrset_allocation_tries_per_request";
    assert_eq!(metrics.value(&format!("{tries}_sum"), &pool), Some(128.0));
    assert_eq!(metrics.value(&format!("{tries}_count"), &pool), Some(1.0));
    let usage = metrics.value("node_ipam_controller_cidrset_usage_cidrs", &pool);
    assert_eq!(usage, Some(129.0 / 256.0));
    story.end();
}
