//! The program is killed before and after each of its writes of a ClusterCIDR, from the making of
//! the default one to its end: the next one goes on from there, and no Node loses or shares a
//! block.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::Value;
use tests::fault_proxy::{FaultProxy, Match};
use tests::kubectl::Kubectl;
use tests::nodes::delete_node;
use tests::{Observer, PATIENCE};

use crate::scene::{KIND, MULTI, cluster_cidr, create, find, hub, is_ready, labelled, start};

const NAME: &str = "default-cluster-cidr";
/// Between two looks.
const BREATH: Duration = Duration::from_millis(50);
/// Time limit on a busy machine.
const LONG: Duration = Duration::from_secs(120);
const RANGE: &str = "--cluster-cidr=10.0.0.0/16";
const FINALIZER: &str = "networking.x-k8s.io/cluster-cidr-finalizer";

/// Progress of the story.
#[derive(Debug, PartialEq)]
enum Act {
    Making,
    Ending,
    Over,
}

/// The user: makes a Node once the object is ready, then wants the object gone, then the Node.
async fn play(hub: &Kubectl, nodes: &Observer, client: &kube::Client, act: &mut Act) {
    match (find(hub, NAME), &act) {
        (Some(object), Act::Making) if is_ready(&object) => {
            if nodes.now().contains_key("a") {
                if nodes.now().cidrs("a") == ["10.0.0.0/24"] {
                    hub.run(&format!("delete {KIND} {NAME} --wait=false"));
                    *act = Act::Ending;
                }
            } else {
                create(client, "a", &[]).await;
                nodes.until("a is there", |now| now.contains_key("a")).await;
            }
        }
        (Some(object), Act::Ending) => {
            let reported = |it: &Value| it["type"] == "Terminating" && it["status"] == "True";
            let conditions = object["status"]["conditions"].as_array().unwrap();
            if conditions.iter().any(reported) && nodes.now().contains_key("a") {
                delete_node(client, "a").await;
                nodes.until("a is gone", |now| !now.contains_key("a")).await;
            }
        }
        (None, Act::Ending) => {
            let node = Api::<Node>::all(client.clone()).get_opt("a").await.unwrap();
            assert!(node.is_none(), "it went before the Node did");
            *act = Act::Over;
        }
        _ => {}
    }
}

/// One story with a life that ends at `write`, which the server has not seen (`before`) or has
/// answered, and a life that goes on to the end of the test.
async fn a_life_ends_at(hub: &Kubectl, what: &str, write: Match, before: bool) {
    let client = hub.plane.client().await;
    let nodes = Observer::start(&client).await;
    let proxy = FaultProxy::start(&hub.plane, tests::control_plane::MANAGER_USER, &[]).await;
    let on = proxy.on(write);
    let held = if before { on.hold() } else { on.hold_answer() };
    let mut act = Act::Making;
    let manager = start(proxy.kubeconfig(), &format!("{MULTI} {RANGE}"));
    tokio::select! {
        () = held.arrived(1) => {}
        () = play_to_the_end(hub, &nodes, &client, &mut act) => panic!("{what} never came"),
    }
    manager.kill();
    manager.exit(PATIENCE).await;
    drop(held);
    // The object of the flags is created once: a later life would create it again.
    let flags = if act == Act::Making { RANGE } else { "" };
    let manager = start(&hub.plane.manager_kubeconfig(), &format!("{MULTI} {flags}"));
    let reported =
        tokio::time::timeout(LONG, play_to_the_end(hub, &nodes, &client, &mut act)).await;
    assert!(reported.is_ok(), "{what}: it does not come to an end: {act:?}");
    tests::assert_never_shared(&nodes.history(), &[]);
    drop(manager);
}

/// Plays until it is over.
async fn play_to_the_end(hub: &Kubectl, nodes: &Observer, client: &kube::Client, act: &mut Act) {
    while *act != Act::Over {
        play(hub, nodes, client, act).await;
        tokio::time::sleep(BREATH).await;
    }
}

/// All writes of a ClusterCIDR's life. The finalizer comes with the object of the flags.
fn writes() -> [(&'static str, Match); 4] {
    let all = || Match::any().path_prefix("/apis/networking.x-k8s.io/");
    let status = || all().and(|it| it.method == Method::PATCH && it.path.ends_with("/status"));
    [
        ("the making", all().and(|it| it.method == Method::POST)),
        ("the first status", status()),
        (
            "the status of its end",
            status().body_contains("1 Node has addresses of this ClusterCIDR"),
        ),
        (
            "the letting go",
            all().and(|it| it.method == Method::PATCH && !it.path.ends_with("/status")),
        ),
    ]
}

/// `rule:finalizer-before-use`, `rule:cluster-cidr-outlives-its-claims`
#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_after_any_write_leaves_a_cluster_cidr_that_the_next_one_brings_to_its_end()
 {
    let hub = hub().await;
    for (what, write) in writes() {
        a_life_ends_at(&hub, what, write, false).await;
    }
}

/// `rule:finalizer-before-use`, `rule:cluster-cidr-outlives-its-claims`
#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_before_any_write_leaves_a_cluster_cidr_that_the_next_one_brings_to_its_end()
 {
    let hub = hub().await;
    for (what, write) in writes() {
        a_life_ends_at(&hub, what, write, true).await;
    }
}

/// A user's own object gets its finalizer by a write of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_around_the_finalizer_has_used_nothing_and_the_next_one_uses_the_object() {
    let hub = hub().await;
    let client = hub.plane.client().await;
    let nodes = Observer::start(&client).await;
    for (number, before) in [true, false].into_iter().enumerate() {
        let name = format!("own-{number}");
        let proxy = FaultProxy::start(&hub.plane, tests::control_plane::MANAGER_USER, &[]).await;
        let finalizer = Match::method(Method::PATCH).body_contains(FINALIZER);
        let held =
            if before { proxy.on(finalizer).hold() } else { proxy.on(finalizer).hold_answer() };
        let manager = start(proxy.kubeconfig(), MULTI);
        manager.line("Controller starting...").await;
        hub.create(&cluster_cidr(&name, &labelled(&["10.0.0.0/16"], 8, &[&name])));
        create(&client, &name, &[&name]).await;
        held.arrived(1).await;
        if before {
            assert!(nodes.now().cidrs(&name).is_empty(), "it was used before it was held");
            assert_eq!(proxy.node_patches().len(), 0);
        }
        manager.kill();
        manager.exit(PATIENCE).await;
        drop(held);
        let manager = start(&hub.plane.manager_kubeconfig(), MULTI);
        let block = format!("10.0.{number}.0/24");
        nodes.until("it is used", |now| now.cidrs(&name) == [block.clone()]).await;
        drop(manager);
    }
    tests::assert_never_shared(&nodes.history(), &[]);
}
