//! ClusterCIDRs that an operator drains (`rule:draining-pool-gives-nothing`).

use std::collections::HashSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::Value;
use tests::nodes::names;
use tests::observer::Nodes;
use tests::poll::poll;
use tests::{PATIENCE, Process, delete_nodes, mk_node};
use tokio_util::sync::CancellationToken;

use crate::scene::{
    KIND, MULTI, Scene, cluster_cidr, condition, create, everybody, is_ready, labelled,
};

const DRAIN: &str = "infra-controller-manager/drain";

fn left(object: &Value) -> &str {
    condition(object, "Draining")["message"].as_str().unwrap_or_default()
}

/// `rule:draining-pool-gives-nothing`
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_with_the_last_node_and_its_end_serves_those_who_wait() {
    let only = [cluster_cidr("only", &everybody(&["10.0.0.0/16"], 8))];
    let scene = Scene::begin(&only, "").await;
    assert_eq!(scene.add("a", &[]).await, ["10.0.0.0/24"]);
    assert_eq!(scene.add("b", &[]).await, ["10.0.1.0/24"]);
    scene.hub.run(&format!("annotate {KIND} only {DRAIN}=true"));
    scene.until("only", "drains", |it| left(it) == "2 Nodes left" && !is_ready(it)).await;
    let why = scene.starves("waits", &[]).await;
    assert!(why.contains("full or draining; draining: only;"), "{why}");
    let labels =
        [("clusterCIDR", "10.0.0.0/16"), ("clusterCIDRName", "only"), ("state", "draining")];
    scene.manager.until_metric("node_ipam_pool_state", &labels, |it| it > 0.5).await;
    scene.remove("a").await;
    scene.until("only", "has one Node", |it| left(it) == "1 Node left").await;
    assert!(scene.events("only", "PoolDrained").is_empty());
    scene.remove("b").await;
    let event = scene.event("only", "PoolDrained").await;
    let told = "ClusterCIDR only is drained: no Node has blocks of it; it can be deleted";
    assert_eq!(event["message"], told);
    scene.until("only", "is drained", |it| left(it) == "0 Nodes left").await;

    scene.hub.run(&format!("annotate {KIND} only {DRAIN}-"));
    assert_eq!(scene.assigned("waits").await, ["10.0.2.0/24"]);
    scene.until("only", "is in service", is_ready).await;
    assert_eq!(scene.events("only", "PoolDrained").len(), 1);
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_shows_a_pool_by_its_range_or_name_and_fails_for_an_unknown_one() {
    let two = [
        cluster_cidr("one", &everybody(&["10.0.0.0/22", "fd00::/118"], 8)),
        cluster_cidr("two", &labelled(&["10.0.0.0/22"], 9, &["foo"])),
    ];
    let scene = Scene::begin(&two, "").await;
    assert_eq!(scene.add("a", &[]).await, ["10.0.0.0/24", "fd00::/120"]);
    scene.hub.run(&format!("annotate {KIND} one {DRAIN}=true"));
    scene.until("one", "drains", |it| left(it) == "1 Node left").await;
    let kubeconfig = format!("--kubeconfig={}", scene.hub.plane.manager_kubeconfig().display());
    let check = async |pool: &str| {
        let args = ["check", &kubeconfig, "--allocate-node-cidrs", MULTI, "--pool", pool];
        let checking = Process::bare().args(args).args(["--leader-elect=false"]).start();
        let status = checking.exit(PATIENCE).await;
        (status.success(), checking.lines().join("\n"))
    };
    poll("the leader has recorded the Node", async || {
        check("one").await.1.contains("1 used, 3 free at ").then_some(())
    })
    .await;
    let (found, shown) = check("one").await;
    let expected = "Pool 10.0.0.0/22 of ClusterCIDR one\n  \
        state               draining\n  \
        blocks              4 of /24\n  \
        used                1\n  \
        services, excluded  0\n  \
        free                3\n  \
        longest free run    3\n  \
        resting             0\n  \
        recorded            1 used, 3 free at ";
    assert!(found && shown.starts_with(expected), "{shown}");
    let expected = "\n  \
        Nodes               1\n    \
        a  10.0.0.0/24\n\n\
        Pool fd00::/118 of ClusterCIDR one\n";
    assert!(shown.contains(expected), "{shown}");
    let (found, shown) = check("10.0.0.0/22").await;
    assert!(found && shown.contains("ClusterCIDR two\n  state               serving"), "{shown}");
    let (found, shown) = check("three").await;
    assert!(!found && shown.contains("cannot show pool \"three\""), "{shown}");
    scene.end(&[]).await;
}

/// Creates 50 Nodes a second until `stop`; their names in the order of their creation.
async fn join_paced(client: kube::Client, stop: CancellationToken) -> Vec<String> {
    let mut turns = tokio::time::interval(Duration::from_millis(20));
    let mut joined = Vec::new();
    let joins = async {
        for name in names("join", 10_000) {
            turns.tick().await;
            mk_node(&name).create(&client).await;
            joined.push(name);
        }
    };
    stop.run_until_cancelled(joins).await;
    joined
}

/// Accepts no block of a draining pool while 50 Nodes a second join. The end of the drain serves those that
/// wait while others still join.
///
/// `rule:draining-pool-gives-nothing`
#[tokio::test(flavor = "multi_thread")]
async fn no_block_is_given_out_after_the_event_while_nodes_join() {
    let two = [
        cluster_cidr("old", &everybody(&["10.0.0.0/20"], 4)),
        cluster_cidr("new", &everybody(&["10.8.0.0/13"], 8)),
    ];
    let scene = Scene::begin(&two, "").await;
    let is_of_old = |cidr: &str| cidr.starts_with("10.0.");
    let of_old =
        |now: &Nodes| now.keys().filter(|it| now.cidrs(it).iter().any(|it| is_of_old(it))).count();
    let stop = CancellationToken::new();
    let joining = tokio::spawn(join_paced(scene.client.clone(), stop.clone()));
    scene.nodes.until("the smaller pool is used first", |now| of_old(now) >= 25).await;
    scene.hub.run(&format!("annotate {KIND} old {DRAIN}=true"));
    scene.until("old", "drains", |it| left(it).ends_with("left")).await;
    // A consistent list: the observer may lag behind.
    let listed = Api::<Node>::all(scene.client.clone()).list(&ListParams::default()).await.unwrap();
    let known: HashSet<String> = listed.items.iter().map(ResourceExt::name_any).collect();
    let count = |now: &Nodes| now.keys().filter(|name| !known.contains(&***name)).count();
    let later = scene.nodes.until("100 more Nodes have joined", |now| count(now) >= 100).await;
    scene.hub.run(&format!("annotate {KIND} new {DRAIN}=true"));
    scene.until("new", "drains", |it| left(it).ends_with("left")).await;
    let waiting = |now: &Nodes| now.keys().filter(|name| now.cidrs(name).is_empty()).count();
    scene.nodes.until("25 Nodes wait", |now| waiting(now) >= 25).await;
    scene.hub.run(&format!("annotate {KIND} new {DRAIN}-"));
    let before: Vec<String> = scene.nodes.now().keys().map(ToString::to_string).collect();
    let served = |now: &Nodes| before.iter().all(|name| !now.cidrs(name).is_empty());
    scene.nodes.until("all that have waited have a pod CIDR", served).await;
    stop.cancel();
    let joined = joining.await.unwrap();
    let all = |now: &Nodes| joined.iter().all(|name| !now.cidrs(name).is_empty());
    let now = scene.nodes.until("all have a pod CIDR", all).await;
    let new: Vec<_> = joined.iter().filter(|name| !known.contains(*name)).collect();
    assert!(new.len() > 125 && later.len() > 100, "{} joined after the event", new.len());
    let wrong: Vec<_> = new.iter().filter(|name| is_of_old(&now.cidrs(name)[0])).collect();
    assert!(wrong.is_empty(), "these have blocks of the pool that drains: {wrong:?}");

    let of_old: Vec<&String> = joined.iter().filter(|it| is_of_old(&now.cidrs(it)[0])).collect();
    delete_nodes(&scene.client, of_old).await;
    scene.event("old", "PoolDrained").await;
    create(&scene.client, "late", &[]).await;
    assert!(!is_of_old(&scene.assigned("late").await[0]));
    scene.delete("old");
    scene.until_gone("old").await;
    scene.end(&[]).await;
}
