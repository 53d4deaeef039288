//! The life of a ClusterCIDR from creation to deletion: finalizer, status, metrics.

use serde_json::{Value, json};
use tests::{FaultProxy, Match, PATIENCE, create_nodes, mk_node, nodes::names};

use crate::scene::{
    KIND, MULTI, Scene, cluster_cidr, condition, everybody, hub, is_ready, labelled, start, until,
    used,
};

const FINALIZER: &str = "networking.x-k8s.io/cluster-cidr-finalizer";

/// `rule:finalizer-before-use`, `rule:cluster-cidr-outlives-its-claims`
#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_held_before_it_is_used_and_goes_with_the_last_node_that_has_addresses_of_it()
{
    let scene = Scene::begin(&[], "").await;
    scene.hub.create(&cluster_cidr("old", &labelled(&["10.0.0.0/16"], 8, &["foo"])));
    scene.hub.create(&cluster_cidr("new", &everybody(&["2001:db8::/110"], 8)));
    let old = scene.until("old", "is ready", is_ready).await;
    assert_eq!(old["metadata"]["finalizers"], json!([FINALIZER]));
    let new = scene.until("new", "is ready", is_ready).await;
    let families = json!([{"cidr": "2001:db8::/110", "total": 1024, "used": 0}]);
    assert_eq!(new["status"]["families"], families);
    assert_eq!(scene.add("a", &["foo"]).await, ["10.0.0.0/24"]);
    mk_node("inside").cidr("10.0.7.0/26").create(&scene.client).await;
    let old = scene.until("old", "counts them", |it| used(it) == [2]).await;
    assert_eq!(condition(&old, "Exhausted")["status"], "False");

    scene.delete("old");
    let old = scene
        .until("old", "is on its way out", |it| condition(it, "Terminating")["status"] == "True");
    let message = condition(&old.await, "Terminating")["message"].clone();
    assert_eq!(
        message,
        "2 Nodes have addresses of this ClusterCIDR; the ClusterCIDR is deleted after the last of them"
    );
    assert_eq!(scene.add("b", &["foo"]).await, ["2001:db8::/120"], "it gives nothing more");
    scene.remove("a").await;
    let one =
        "1 Node has addresses of this ClusterCIDR; the ClusterCIDR is deleted after that Node";
    scene.until("old", "counts one", |it| condition(it, "Terminating")["message"] == one).await;
    scene.remove("inside").await;
    scene.until_gone("old").await;

    // What was in it is free for others.
    scene.hub.create(&cluster_cidr("next", &labelled(&["10.0.0.0/24"], 8, &["foo"])));
    scene.until("next", "is ready", is_ready).await;
    assert_eq!(scene.add("c", &["foo"]).await, ["10.0.0.0/24"]);
    scene.end(&[]).await;
}

/// `rule:cluster-cidr-outlives-its-claims`
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_replaced_by_one_of_the_same_range_goes_while_its_nodes_live() {
    let old = [cluster_cidr("old", &everybody(&["10.0.0.0/16"], 8))];
    let scene = Scene::begin(&old, "").await;
    assert_eq!(scene.add("a", &[]).await, ["10.0.0.0/24"]);
    scene.delete("old");
    scene.hub.create(&cluster_cidr("new", &everybody(&["10.0.0.0/16"], 9)));
    scene.until_gone("old").await;
    assert_eq!(scene.nodes.now().cidrs("a"), ["10.0.0.0/24"]);
    assert_eq!(scene.add("b", &[]).await, ["10.0.2.0/23"]);
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_without_addresses_in_use_is_deleted_at_once() {
    let unused = [cluster_cidr("unused", &everybody(&["10.0.0.0/16"], 8))];
    let scene = Scene::begin(&unused, "--service-cluster-ip-range=10.0.0.0/24").await;
    scene.until("unused", "is ready", is_ready).await;
    scene.delete("unused");
    scene.until_gone("unused").await;
    scene.end(&[]).await;
}

/// `rule:cluster-cidr-outlives-its-claims`
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_the_flags_do_not_allow_any_more_goes_with_its_last_node_too() {
    let hub = hub().await;
    let wide = [cluster_cidr("wide", &everybody(&["fd00::/96"], 8))];
    let scene = Scene::begin_on(hub, &wide, "--node-cidr-max-ipv6-bits=24").await;
    assert_eq!(scene.add("a", &[]).await, ["fd00::/120"]);
    scene.manager.kill();
    scene.manager.exit(PATIENCE).await;
    let manager = start(&scene.hub.plane.manager_kubeconfig(), MULTI);
    scene.until("wide", "is invalid", |it| condition(it, "Invalid")["status"] == "True").await;
    scene.delete("wide");
    let reported = |it: &Value| {
        condition(it, "Terminating")["message"]
            == "1 Node has addresses of this ClusterCIDR; the ClusterCIDR is deleted after that \
                Node"
    };
    scene.until("wide", "waits for its Node", reported).await;
    scene.remove("a").await;
    scene.until_gone("wide").await;
    drop(manager);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_two_labels_and_end_with_their_object() {
    let two = [
        cluster_cidr("one", &everybody(&["10.0.0.0/22"], 8)),
        cluster_cidr("two", &labelled(&["10.0.0.0/22"], 9, &["foo"])),
    ];
    let scene = Scene::begin(&two, "").await;
    scene.add("a", &[]).await;
    let one = [("clusterCIDR", "10.0.0.0/22"), ("clusterCIDRName", "one")];
    let two = [("clusterCIDR", "10.0.0.0/22"), ("clusterCIDRName", "two")];
    let name = |of: &str| format!("node_ipam_controller_multicidrset_{of}");
    let metrics = scene.manager.metrics().await;
    for (of, labels, value) in [
        ("max_cidrs", &one, 4.0),
        ("max_cidrs", &two, 2.0),
        ("usage_cidrs", &one, 0.25),
        ("usage_cidrs", &two, 0.5),
        ("cidrs_allocations_total", &one, 1.0),
        ("cidrs_releases_total", &one, 0.0),
        ("allocation_tries_per_request_count", &one, 1.0),
    ] {
        assert_eq!(metrics.value(&name(of), labels), Some(value), "{of} {labels:?}");
    }
    for queue in ["multi_cidr_range_allocator_node", "multi_cidr_range_allocator_cidr"] {
        assert!(metrics.value("workqueue_adds_total", &[("name", queue)]).is_some(), "{queue}");
    }
    scene.remove("a").await;
    scene.manager.until_metric(&name("cidrs_releases_total"), &one, |it| it > 0.5).await;
    scene.delete("one");
    scene.until_gone("one").await;
    scene.manager.until_metric(&name("usage_cidrs"), &one, f64::is_nan).await;
    let metrics = scene.manager.metrics().await;
    assert_eq!(metrics.value(&name("allocation_tries_per_request_count"), &one), None);
    assert_eq!(metrics.value(&name("usage_cidrs"), &two), Some(0.0));
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_follows_within_seconds_and_is_not_written_for_every_node() {
    let hub = hub().await;
    let proxy = FaultProxy::start(&hub.plane, tests::control_plane::MANAGER_USER, &[]).await;
    hub.create(&cluster_cidr("busy", &everybody(&["10.0.0.0/16"], 8)));
    let begun = std::time::Instant::now();
    let manager = start(proxy.kubeconfig(), MULTI);
    let client = hub.plane.client().await;
    create_nodes(&client, names("n", 100).map(mk_node)).await;
    until(&hub, "busy", "counts all", |it| used(it) == [100]).await;
    let status = Match::method(http::Method::PATCH).path(&format!(
        "/apis/networking.x-k8s.io/v1/{}/busy/status",
        KIND.split('.').next().unwrap()
    ));
    let written = proxy.requests_like(&status).len();
    let most = 1 + usize::try_from(begun.elapsed().as_secs() / 5).unwrap();
    assert!((1..=most).contains(&written), "{written} in {:?}", begun.elapsed());
    drop(manager);
}
