//! Events: repeated events are counted, and a failed event delays nothing else.

use std::time::Duration;

use http::Method;
use tests::nodes::{delete_node, names};
use tests::{Fault, Match, Stopwatch, create_nodes, eventually, mk_node};

use crate::scene::Scene;

const ARGS: &str = "--leader-elect=false --use-service-account-credentials=true";

/// Requests about core Events, new ones and counts alike.
fn about_events() -> Match {
    Match::any().path_prefix("/api/v1/namespaces/").and(|request| request.path.contains("/events"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_happens_again_is_counted_on_the_first() {
    let scene = Scene::set().await;
    mk_node("kept").cidr("10.5.0.0/24").create(&scene.client).await;
    let _manager = scene.start(ARGS).await;
    // Each of the rivals makes the same trouble for the Node that is kept.
    for round in 1..=3 {
        mk_node("rival").cidr("10.5.0.0/24").create(&scene.client).await;
        let event = scene
            .event("kept", "PodCIDRConflict", |event| event.count.is_some_and(|n| n >= round))
            .await;
        assert_eq!(event.count, Some(round));
        delete_node(&scene.client, "rival").await;
        scene.nodes.until("the rival is gone", |now| !now.contains_key("rival")).await;
    }
    let asked = scene.proxy.requests_like(&about_events());
    let about_kept: Vec<_> = asked
        .iter()
        .filter(|seen| {
            seen.request.path.contains("/events/kept.")
                || seen.request.json()["involvedObject"]["name"] == "kept"
        })
        .map(|seen| seen.request.method.clone())
        .collect();
    assert_eq!(about_kept, [Method::POST, Method::PATCH, Method::PATCH]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_leader_counts_on_the_events_of_the_one_before() {
    let scene = Scene::set().await;
    mk_node("odd").cidr("192.168.0.0/24").create(&scene.client).await;
    let mut names = std::collections::BTreeSet::new();
    for round in 1..=2 {
        let manager = scene.start(ARGS).await;
        let event = scene
            .event("odd", "PodCIDROutOfRange", |event| event.count.is_some_and(|n| n >= round))
            .await;
        assert_eq!(event.count, Some(round));
        names.insert(event.metadata.name);
        manager.terminate();
        assert!(manager.exit(crate::scene::AT_ONCE).await.success());
    }
    assert_eq!(names.len(), 1, "{names:?}");
}

/// Starts with Nodes that each make an event, then checks that others are served meanwhile and
/// that the end is not held up.
async fn does_not_matter(scene: Scene, refused: impl Fn() -> usize) {
    // Nodes that another program made would stop it.
    let manager = scene.start(&format!("{ARGS} --on-second-allocator=warn")).await;
    let odd = names("odd", 60).map(|name| mk_node(name).cidr("192.168.0.0/24"));
    create_nodes(&scene.client, odd).await;
    eventually("an event is refused", || refused() > 0).await;
    for name in names("n", 20) {
        let took = scene.serves(&name).await;
        assert!(took < Duration::from_secs(2), "{name} had to wait for {took:?}");
    }
    assert_eq!(manager.get("/livez").await.unwrap(), (200, "ok".into()));
    let asked = Stopwatch::start();
    manager.terminate();
    assert!(manager.exit(crate::scene::AT_ONCE).await.success());
    let took = asked.elapsed();
    // The last events of the controller get 2 s, those of the process another 2.
    assert!(took < Duration::from_secs(6), "the end took {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_events_delays_no_allocation() {
    let scene = Scene::set().await;
    let rule = scene.proxy.on(about_events()).then(Fault::status(500));
    does_not_matter(scene, move || rule.hits()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_events_delays_no_allocation() {
    let scene = Scene::set().await;
    let rule = scene.proxy.on(about_events()).then(Fault::DelayBefore(Duration::from_secs(120)));
    does_not_matter(scene, move || rule.hits()).await;
}
