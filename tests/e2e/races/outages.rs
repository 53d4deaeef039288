//! The server stands still, or the process does: a leader that cannot renew its lease ends before
//! another one can lead, and writes nothing on the way.

use std::time::Duration;

use http::Method;
use tests::nodes::names;
use tests::{Fault, Match, PATIENCE, Stopwatch, create_nodes, mk_node};
use tokio::time::{Instant, sleep_until};

use crate::scene::{SHORT_LEASE, Scene, launch};

/// Longer than the lease here, and than the default one.
const OUTAGE: Duration = Duration::from_secs(20);
/// Longer than kube-controller-manager waits for a server at its start.
const GIVES_UP: Duration = Duration::from_secs(12);
const POOL: &str = "--cluster-cidr=10.0.0.0/16";

#[tokio::test(flavor = "multi_thread")]
async fn with_default_timings_a_frozen_server_ends_the_leader_within_11_s() {
    let scene = Scene::set().await;
    let leader = scene.start_leader(POOL).await;
    scene.add("before").await;
    scene.proxy.freeze();
    let watch = Stopwatch::start();
    mk_node("meanwhile").create(&scene.client).await;
    let status = leader.exit(PATIENCE).await;
    let took = watch.elapsed();
    assert_eq!(status.code(), Some(1));
    // Counted from before the last renewal could have been answered.
    assert!(took < Duration::from_secs(10 + 1), "it ended after {took:?}");
    assert!(leader.lines().iter().any(|line| line.contains("leaderelection lost")));

    // The kubelet restarts it at once, and it waits for the server.
    let restarted = launch(&scene.proxy, POOL);
    sleep_until(Instant::now() + GIVES_UP).await;
    assert!(restarted.is_running(), "it waits for the server");
    scene.proxy.thaw();
    restarted.line("Controller starting...").await;
    scene.assigned("meanwhile").await;
    scene.add("after").await;
    assert!(restarted.is_running());
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_stopped_for_20_s_writes_nothing_when_it_wakes_and_ends() {
    let scene = Scene::set().await;
    let sleeper = scene.start_leader(&format!("{SHORT_LEASE} {POOL}")).await;
    // All Nodes are about to be tried again when the process is stopped.
    let refused = scene.proxy.on(Match::node_patches()).then(Fault::status(422));
    create_nodes(&scene.client, names("n", 30).map(mk_node)).await;
    refused.hit(60).await;
    sleeper.pause();
    let stopped = Instant::now();
    let second_proxy = scene.another_proxy().await;
    let second = launch(&second_proxy, &format!("{SHORT_LEASE} {POOL}"));
    scene.nodes.until("the second serves the rest", |now| now.assigned() == 30).await;
    create_nodes(&scene.client, names("late", 10).map(mk_node)).await;
    scene.nodes.until("and newcomers", |now| now.assigned() == 40).await;
    sleep_until(stopped + OUTAGE).await;

    refused.remove();
    let woken = std::time::Instant::now();
    sleeper.resume();
    assert_eq!(sleeper.exit(PATIENCE).await.code(), Some(1));
    // It may still tell of its end: an Event decides nothing.
    let written = Match::any()
        .and(|request| request.method != Method::GET && !request.path.contains("/events"));
    let mut written = scene.proxy.requests_like(&written);
    written.retain(|seen| seen.arrived >= woken);
    assert!(written.is_empty(), "written after the end of its lease: {written:?}");
    assert!(second.is_running());
    scene.end_with(&[], &[&second_proxy]);
}
