//! Service ranges and claims that overlap them (`rule:block-is-used-while-claimed`).

use crate::story::Story;

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
