//! Blocks of ClusterCIDRs, by the same facts as those of `--cluster-cidr`.

use serde_json::Value;
use tests::{create_nodes, mk_node, nodes::names};

use crate::scene::{Scene, cluster_cidr, labelled, used};

type Row = (&'static str, &'static [&'static str], u8, &'static [&'static [&'static str]]);

/// Rows of (rule, range and host bits, blocks in the order of assignment).
const GIVEN: [Row; 7] = [
    ("one-block-of-ipv4", &["127.123.234.0/28"], 4, &[&["127.123.234.0/28"]]),
    ("one-block-of-ipv6", &["beef:1234::/30"], 98, &[&["beef:1234::/30"]]),
    (
        "in-order",
        &["127.122.0.0/16"],
        8,
        &[&["127.122.0.0/24"], &["127.122.1.0/24"], &["127.122.2.0/24"]],
    ),
    (
        "host-bits-are-masked",
        &["2001:beef:1234:369b::/60"],
        64,
        &[&["2001:beef:1234:3690::/64"], &["2001:beef:1234:3691::/64"]],
    ),
    (
        "blocks-need-not-end-at-a-colon",
        &["ace:cab:deca::/84"],
        30,
        &[&["ace:cab:deca::/98"], &["ace:cab:deca::4000:0/98"]],
    ),
    (
        "a-wide-claim-is-stepped-over",
        &["10.50.0.0/16"],
        8,
        &[&["10.50.128.0/24"], &["10.50.129.0/24"]],
    ),
    (
        "both-families",
        &["10.60.0.0/22", "fd00:60::/118"],
        8,
        &[&["10.60.0.0/24", "fd00:60::/120"], &["10.60.1.0/24", "fd00:60::100/120"]],
    ),
];

fn objects() -> Vec<Value> {
    let object =
        |(what, ranges, bits, _): &Row| cluster_cidr(what, &labelled(ranges, *bits, &[what]));
    GIVEN.iter().map(object).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_cut_and_given_as_of_a_cluster_cidr_of_the_flags() {
    let scene = Scene::begin(&objects(), "").await;
    mk_node("wide").cidr("10.50.0.0/17").create(&scene.client).await;
    scene.nodes.until("wide is there", |now| now.contains_key("wide")).await;
    scene.until("a-wide-claim-is-stepped-over", "counts it", |it| used(it) == [128]).await;
    for (what, _, _, blocks) in &GIVEN {
        for (number, block) in blocks.iter().enumerate() {
            assert_eq!(scene.add(&format!("{what}-{number}"), &[what]).await, *block, "{what}");
        }
    }
    for full in ["one-block-of-ipv4", "one-block-of-ipv6"] {
        let why = scene.starves(&format!("{full}-surplus"), &[full]).await;
        assert!(why.contains(full), "{why}");
        scene.remove(&format!("{full}-0")).await;
        scene.assigned(&format!("{full}-surplus")).await;
    }
    scene.end(&["wide"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_come_back_last_and_go_to_who_waits() {
    let objects = [
        cluster_cidr("reused", &labelled(&["10.0.0.0/22"], 8, &["reused"])),
        cluster_cidr("full", &labelled(&["127.123.234.0/26"], 4, &["full"])),
        cluster_cidr("held", &labelled(&["10.10.0.0/22"], 8, &["held"])),
    ];
    let scene = Scene::begin(&objects, "").await;
    for (name, block) in [("a", "10.0.0.0/24"), ("b", "10.0.1.0/24"), ("c", "10.0.2.0/24")] {
        assert_eq!(scene.add(name, &["reused"]).await, [block]);
    }
    scene.remove("a").await;
    assert_eq!(scene.add("d", &["reused"]).await, ["10.0.3.0/24"]);
    assert_eq!(scene.add("e", &["reused"]).await, ["10.0.0.0/24"]);

    for name in names("f", 4) {
        scene.add(&name, &["full"]).await;
    }
    let why = scene.starves("x", &["full"]).await;
    let said = "in every ClusterCIDR that selects the Node at least one range is";
    assert!(why.contains(said), "{why}");
    scene.remove("f-1").await;
    assert_eq!(scene.assigned("x").await, ["127.123.234.16/28"]);

    for (name, cidr) in [("first", "10.10.0.0/24"), ("third", "10.10.2.0/24")] {
        mk_node(name).cidr(cidr).create(&scene.client).await;
    }
    scene.until("held", "counts both", |it| used(it) == [2]).await;
    assert_eq!(scene.add("g", &["held"]).await, ["10.10.1.0/24"]);
    assert_eq!(scene.add("h", &["held"]).await, ["10.10.3.0/24"]);
    scene.starves("i", &["held"]).await;
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_services_and_of_wide_and_small_claims_are_never_assigned() {
    let objects = [
        cluster_cidr("covered", &labelled(&["10.244.0.0/25"], 7, &["covered"])),
        cluster_cidr("wide", &labelled(&["10.244.0.0/22"], 8, &["wide"])),
        cluster_cidr("small", &labelled(&["a00::/8"], 104, &["small"])),
    ];
    let scene = Scene::begin(&objects, "--service-cluster-ip-range=10.244.0.0/24").await;
    let held = [("inside", "10.244.1.0/24"), ("giant", "10.244.0.0/15"), ("tiny", "a00::/86")];
    create_nodes(&scene.client, held.map(|(name, cidr)| mk_node(name).cidr(cidr))).await;
    scene.nodes.until("they are there", |now| now.len() == held.len()).await;
    scene.starves("a", &["covered"]).await;
    scene.starves("b", &["wide"]).await;
    scene.remove("giant").await;
    assert_eq!(scene.assigned("b").await, ["10.244.2.0/24"]);
    assert_eq!(scene.add("c", &["wide"]).await, ["10.244.3.0/24"]);
    scene.starves("d", &["wide"]).await;
    assert_eq!(scene.add("e", &["small"]).await, ["a00:100::/24"]);
    scene.end(&["inside", "giant"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_and_excluded_ranges_are_never_assigned_from_any_object() {
    let early = [cluster_cidr("early", &labelled(&["10.0.0.0/16"], 8, &["early"]))];
    let flags =
        "--service-cluster-ip-range=10.0.1.128/26,fd00::/120 --node-cidr-exclude=10.0.3.7/32";
    let scene = Scene::begin(&early, flags).await;
    assert_eq!(scene.add("a", &["early"]).await, ["10.0.0.0/24"]);
    assert_eq!(scene.add("b", &["early"]).await, ["10.0.2.0/24"]);
    assert_eq!(scene.add("excluded", &["early"]).await, ["10.0.4.0/24"]);
    scene
        .hub
        .create(&cluster_cidr("late", &labelled(&["10.0.1.0/24", "fd00::/118"], 6, &["late"])));
    assert_eq!(scene.add("c", &["late"]).await, ["10.0.1.0/26", "fd00::100/122"]);
    assert_eq!(scene.add("d", &["late"]).await, ["10.0.1.64/26", "fd00::140/122"]);
    assert_eq!(scene.add("e", &["late"]).await, ["10.0.1.192/26", "fd00::180/122"]);
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_nodes_created_at_once_share_three_overlapping_ranges_and_no_block() {
    let objects = [
        cluster_cidr("small", &labelled(&["10.0.0.0/14"], 6, &["small"])),
        cluster_cidr("medium", &labelled(&["10.0.0.0/14"], 8, &["medium"])),
        cluster_cidr("large", &labelled(&["10.0.0.0/14"], 9, &["large"])),
    ];
    let scene = Scene::begin(&objects, "").await;
    let sizes = ["small", "medium", "large"].into_iter().cycle();
    let nodes = names("n", 300).zip(sizes).map(|(name, size)| mk_node(name).label(size, ""));
    create_nodes(&scene.client, nodes).await;
    scene.nodes.until("all are assigned", |now| now.assigned() == 300).await;
    scene.end(&[]).await;
}
