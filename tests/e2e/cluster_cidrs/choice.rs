//! Tests which ClusterCIDR serves a Node.

use serde_json::{Value, json};

use crate::scene::{Scene, cluster_cidr, create, everybody, labelled};

type Texts = &'static [&'static str];
type Row = (&'static str, Texts, [Value; 2], Texts);

/// Rows of (rule, labels of the Node, two specs, expected CIDRs). Each row has its own labels and
/// ranges, because all rows run in one cluster.
fn rows() -> Vec<Row> {
    vec![
        (
            "more-requirements",
            &["foo1", "bar1"],
            [
                labelled(&["10.11.0.0/24"], 8, &["foo1"]),
                labelled(&["10.12.0.0/24"], 8, &["bar1", "foo1"]),
            ],
            &["10.12.0.0/24"],
        ),
        (
            "fewer-blocks",
            &["foo2"],
            [labelled(&["172.16.0.0/16"], 8, &["foo2"]), labelled(&["10.1.0.0/24"], 8, &["foo2"])],
            &["10.1.0.0/24"],
        ),
        (
            "smaller-blocks",
            &["foo3"],
            [labelled(&["10.2.0.0/24"], 8, &["foo3"]), labelled(&["10.2.1.0/26"], 6, &["foo3"])],
            &["10.2.1.0/26"],
        ),
        (
            "selector-text",
            &["abc4", "foo4"],
            [labelled(&["10.3.1.0/26"], 6, &["foo4"]), labelled(&["10.3.3.0/26"], 6, &["abc4"])],
            &["10.3.3.0/26"],
        ),
        (
            "range-text",
            &["foo5"],
            [labelled(&["10.4.3.0/26"], 6, &["foo5"]), labelled(&["10.4.1.0/26"], 6, &["foo5"])],
            &["10.4.1.0/26"],
        ),
        (
            "scarcer-family",
            &["foo6"],
            [
                labelled(&["127.123.234.0/23"], 8, &["foo6"]),
                labelled(&["10.5.0.0/16", "ace:cab:deca::/120"], 8, &["foo6"]),
            ],
            &["10.5.0.0/24", "ace:cab:deca::/120"],
        ),
        (
            "selector-before-none",
            &["foo7"],
            [everybody(&["10.6.0.0/24"], 8), labelled(&["10.7.0.0/16"], 8, &["foo7"])],
            &["10.7.0.0/24"],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_of_the_order_decides_where_those_before_it_do_not() {
    let mut objects = Vec::new();
    for (what, _, specs, _) in rows() {
        for (number, spec) in specs.iter().enumerate() {
            objects.push(cluster_cidr(&format!("{what}-{number}"), spec));
        }
    }
    let scene = Scene::begin(&objects, "").await;
    for (what, labels, _, cidrs) in rows() {
        assert_eq!(scene.add(what, labels).await, cidrs, "{what}");
    }
    // One that has no block left passes the Node on: to the other one, then to those for everybody.
    let dual = scene.add("second", &["foo6"]).await;
    assert_eq!(dual, ["127.123.234.0/24"], "all families of one object, or none");
    assert_eq!(scene.add("third", &["foo5"]).await, ["10.4.3.0/26"]);
    assert_eq!(scene.add("fourth", &["foo5"]).await, ["10.6.0.0/24"]);
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_two_sizes_share_a_range_and_one_term_of_a_selector_is_enough() {
    let term = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let mut large = everybody(&["10.244.0.0/16"], 9);
    large["nodeSelector"] = json!({"nodeSelectorTerms": [term("large"), term("huge")]});
    let mut named = everybody(&["10.99.0.0/24"], 8);
    named["nodeSelector"] = json!({"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["by-name"]}]}]});
    let objects = [
        cluster_cidr("small", &labelled(&["10.244.0.0/16"], 7, &["small"])),
        cluster_cidr("large", &large),
        cluster_cidr("named", &named),
    ];
    let scene = Scene::begin(&objects, "").await;
    for (name, label, block) in [
        ("a", "small", "10.244.0.0/25"),
        ("b", "large", "10.244.2.0/23"),
        ("c", "small", "10.244.0.128/25"),
        ("d", "huge", "10.244.4.0/23"),
    ] {
        assert_eq!(scene.add(name, &[label]).await, [block]);
    }
    assert_eq!(scene.add("by-name", &[]).await, ["10.99.0.0/24"]);
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_terms_are_needed_where_the_flag_says_so() {
    let term = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let mut both = everybody(&["10.1.0.0/16"], 8);
    both["nodeSelector"] = json!({"nodeSelectorTerms": [term("foo"), term("bar")]});
    let objects =
        [cluster_cidr("both", &both), cluster_cidr("rest", &everybody(&["10.9.0.0/16"], 8))];
    let scene = Scene::begin(&objects, "--cluster-cidr-selector-terms=and").await;
    assert_eq!(scene.add("one", &["foo"]).await, ["10.9.0.0/24"]);
    assert_eq!(scene.add("two", &["foo", "bar"]).await, ["10.1.0.0/24"]);
    scene.end(&[]).await;
}

/// `rule:unselected-nodes-get-nothing`
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_the_flag_does_not_select_gets_nothing_of_any_cluster_cidr() {
    let object = cluster_cidr("all", &everybody(&["10.44.0.0/24"], 8));
    let scene = Scene::begin(&[object], "--node-selector=!host").await;
    create(&scene.client, "host", &["host"]).await;
    assert_eq!(scene.add("pods", &[]).await, ["10.44.0.0/24"]);
    scene.event("all", "PodCIDRPoolFull").await;
    let servable = [("clusterCIDRName", "all")];
    assert_eq!(scene.manager.metric("node_ipam_servable_nodes", &servable).await, Some(0.0));
    assert!(scene.nodes.now().cidrs("host").is_empty());
    assert_eq!(scene.events("host", "CIDRNotAvailable").len(), 0, "it does not wait");
    scene.remove("pods").await;
    scene.event("all", "PodCIDRPoolHasRoom").await;
    assert!(scene.nodes.now().cidrs("host").is_empty());
    scene.end(&[]).await;
}
