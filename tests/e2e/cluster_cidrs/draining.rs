//! ClusterCIDRs that an operator drains (`rule:draining-pool-gives-nothing`).

use std::time::Duration;

use serde_json::Value;
use tests::{PATIENCE, Process, Stopwatch, create_nodes, mk_node, nodes::names};

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
    let watch = Stopwatch::start();
    assert_eq!(scene.assigned("waits").await, ["10.0.2.0/24"]);
    let took = watch.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
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
        let checking = Process::bare().args(args).start();
        let status = checking.exit(PATIENCE).await;
        (status.success(), checking.lines().join("\n"))
    };
    let (found, shown) = check("one").await;
    let expected = "Pool 10.0.0.0/22 of ClusterCIDR one\n  \
        state               draining\n  \
        blocks              4 of /24\n  \
        used                1\n  \
        services, excluded  0\n  \
        free                3\n  \
        longest free run    3\n  \
        resting             see node_ipam_resting_claims of the leader\n  \
        Nodes               1\n    \
        a  10.0.0.0/24\n\n\
        Pool fd00::/118 of ClusterCIDR one\n";
    assert!(found && shown.starts_with(expected), "{shown}");
    let (found, shown) = check("10.0.0.0/22").await;
    assert!(found && shown.contains("ClusterCIDR two\n  state               serving"), "{shown}");
    let (found, shown) = check("three").await;
    assert!(!found && shown.contains("cannot show pool \"three\""), "{shown}");
    scene.end(&[]).await;
}

/// `rule:draining-pool-gives-nothing`
#[tokio::test(flavor = "multi_thread")]
async fn no_block_is_given_out_after_the_event_while_nodes_join() {
    let two = [
        cluster_cidr("old", &everybody(&["10.0.0.0/20"], 8)),
        cluster_cidr("new", &everybody(&["10.1.0.0/16"], 8)),
    ];
    let scene = Scene::begin(&two, "").await;
    let is_of_old = |cidr: &str| cidr.starts_with("10.0.");
    assert!(is_of_old(&scene.add("first", &[]).await[0]), "the smaller pool is used first");
    scene.hub.run(&format!("annotate {KIND} old {DRAIN}=true"));
    create_nodes(&scene.client, names("join", 100).map(mk_node)).await;
    scene.until("old", "drains", |it| left(it).ends_with("left")).await;
    let all_names = || names("join", 100);
    let now = scene
        .nodes
        .until("all have a pod CIDR", |now| all_names().all(|name| !now.cidrs(&name).is_empty()))
        .await;
    let joined = all_names().chain(["first".to_owned()]);
    let of_old: Vec<String> = joined.filter(|name| is_of_old(&now.cidrs(name)[0])).collect();
    for name in &of_old {
        scene.remove(name).await;
    }
    scene.event("old", "PoolDrained").await;
    create(&scene.client, "late", &[]).await;
    assert!(!is_of_old(&scene.assigned("late").await[0]));
    scene.delete("old");
    scene.until_gone("old").await;
    scene.end(&[]).await;
}
