//! Pools, masks and the order of blocks (`rule:blocks-are-next-fit`).

use std::time::{Duration, Instant};

use tests::nodes::names;
use tests::{create_nodes, delete_nodes, mk_node};

use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_one_ipv4_block_is_given_out_freed_and_given_out_again() {
    let story = Story::begin("--cluster-cidr=127.123.234.0/30 --node-cidr-mask-size=30").await;
    assert_eq!(story.add("a").await, ["127.123.234.0/30"]);
    let why = story.starves("b").await;
    for part in ["127.123.234.0/30", "/30", "1 block"] {
        assert!(why.contains(part), "{part:?} is missing in {why:?}");
    }
    story.remove("a").await;
    assert_eq!(story.assigned("b").await, ["127.123.234.0/30"]);
    story.starves("c").await;
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_one_ipv6_block_is_exhausted_by_the_first_node() {
    let story = Story::begin("--cluster-cidr=beef:1234::/30 --node-cidr-mask-size=30").await;
    assert_eq!(story.add("a").await, ["beef:1234::/30"]);
    story.starves("b").await;
    story.end();
}

/// Creates Nodes one after the other, so that their order is certain.
async fn fill(story: &Story, prefix: &str, count: usize) {
    for (index, name) in names(prefix, count).enumerate() {
        assert_eq!(story.add(&name).await, [format!("127.123.{index}.0/24")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_that_was_freed_gives_out_the_same_blocks_in_the_same_order() {
    let story = Story::begin("--cluster-cidr=127.123.0.0/16").await;
    fill(&story, "first", 256).await;
    story.starves("surplus").await;
    story.remove("surplus").await;
    delete_nodes(&story.client, names("first", 256)).await;
    story.until_used("127.123.0.0/16", 0.0).await;
    fill(&story, "second", 256).await;
    story.starves("surplus").await;
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_occupied_twice_count_once() {
    let mut story = Story::begin("--cluster-cidr=127.123.0.0/16").await;
    for index in 128..256 {
        story.add_foreign(&format!("held-{index}"), &[&format!("127.123.{index}.0/24")]).await;
    }
    story.add_foreign("held-128-again", &["127.123.128.0/24"]).await;
    story.until_used("127.123.0.0/16", 128.0).await;
    fill(&story, "n", 128).await;
    story.starves("surplus").await;
    story.end();
}

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
async fn ipv6_pools_of_up_to_16_bits_start() {
    let story = Story::begin("--cluster-cidr=beef:1234::/32 --node-cidr-mask-size=48").await;
    assert_eq!(story.add("a").await, ["beef:1234::/48"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn host_bits_of_the_cluster_cidr_are_masked() {
    let story = Story::begin("--cluster-cidr=2001:beef:1234:369b::/60").await;
    assert_eq!(story.add("a").await, ["2001:beef:1234:3690::/64"]);
    assert_eq!(story.add("b").await, ["2001:beef:1234:3691::/64"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn ipv6_blocks_need_not_end_at_a_colon() {
    let story = Story::begin("--cluster-cidr=ace:cab:deca::/84 --node-cidr-mask-size=98").await;
    assert_eq!(story.add("a").await, ["ace:cab:deca::/98"]);
    assert_eq!(story.add("b").await, ["ace:cab:deca::4000:0/98"]);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_smaller_than_a_block_takes_the_block() {
    let story = Story::with_nodes(
        &[("small", "a00::/86")],
        "--cluster-cidr=a00::/8 --node-cidr-mask-size=24",
    )
    .await;
    assert_eq!(story.add("a").await, ["a00:100::/24"]);
    story.end();
}

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

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_nodes_created_at_once_all_get_different_blocks() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/15").await;
    create_nodes(&story.client, names("n", 300).map(mk_node)).await;
    story.nodes.until("all are assigned", |now| now.assigned() == 300).await;
    story.end();
}
