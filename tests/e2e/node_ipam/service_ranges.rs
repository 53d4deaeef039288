//! Service ranges and claims that overlap them (`rule:block-is-used-while-claimed`).

use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_range_inside_the_pool_is_skipped() {
    let story = Story::begin(
        "--cluster-cidr=127.123.234.0/24 --node-cidr-mask-size=30 \
         --service-cluster-ip-range=127.123.234.0/26",
    )
    .await;
    assert_eq!(story.add("a").await, ["127.123.234.64/30"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn service_range_and_existing_nodes_are_skipped_together() {
    let story = Story::with_nodes(
        &[
            ("n64", "127.123.234.64/30"),
            ("n68", "127.123.234.68/30"),
            ("n72", "127.123.234.72/30"),
            ("n80", "127.123.234.80/30"),
        ],
        "--cluster-cidr=127.123.234.0/24 --node-cidr-mask-size=30 \
         --service-cluster-ip-range=127.123.234.0/26",
    )
    .await;
    assert_eq!(story.add("a").await, ["127.123.234.76/30"]);
    story.end();
}

const POOL_30: &str = "--cluster-cidr=10.1.0.0/16 --service-cluster-ip-range=";

#[tokio::test(flavor = "multi_thread")]
async fn service_ranges_below_and_above_the_pool_have_no_effect() {
    for range in ["10.0.255.0/24", "10.2.0.0/24"] {
        let story = Story::begin(&format!("{POOL_30}{range}")).await;
        story.until_used("10.1.0.0/16", 0.0).await;
        assert_eq!(story.add("a").await, ["10.1.0.0/24"]);
        story.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_range_on_the_first_block_moves_the_first_node_to_the_second() {
    let story = Story::begin(&format!("{POOL_30}10.1.0.0/24")).await;
    assert_eq!(story.add("a").await, ["10.1.1.0/24"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_range_on_the_last_block_leaves_255() {
    let story = Story::begin(&format!("{POOL_30}10.1.255.0/24")).await;
    story.until_used("10.1.0.0/16", 1.0).await;
    for index in 0..255 {
        assert_eq!(story.add(&format!("n{index}")).await, [format!("10.1.{index}.0/24")]);
    }
    story.starves("surplus").await;
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_or_excluded_range_smaller_than_a_block_takes_the_block() {
    let kept_out = "--service-cluster-ip-range=10.0.1.128/26 --node-cidr-exclude=10.0.3.7/32";
    let story = Story::begin(&format!("--cluster-cidr=10.0.0.0/16 {kept_out}")).await;
    assert_eq!(story.add("a").await, ["10.0.0.0/24"]);
    assert_eq!(story.add("b").await, ["10.0.2.0/24"]);
    assert_eq!(story.add("c").await, ["10.0.4.0/24"]);
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_range_that_covers_the_pool_starves_every_node() {
    let story =
        Story::begin("--cluster-cidr=10.0.0.0/23 --service-cluster-ip-range=10.0.0.0/21").await;
    story.starves("a").await;
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_node_that_covers_everything_frees_only_blocks_without_other_claims() {
    let mut story = Story::with_nodes(
        &[("ok", "10.244.1.0/24")],
        "--cluster-cidr=10.244.0.0/22 --service-cluster-ip-range=10.244.0.0/24",
    )
    .await;
    story.add_foreign("giant", &["10.244.0.0/15"]).await;
    story.until_used("10.244.0.0/22", 4.0).await;
    story.remove("giant").await;
    assert_eq!(story.add("a").await, ["10.244.2.0/24"]);
    assert_eq!(story.add("b").await, ["10.244.3.0/24"]);
    story.starves("c").await;
    story.end();
}
