//! Nothing starves the lease, and a lease that is not renewed ends the process: seen on the
//! program as it is shipped, whose threads are stopped from outside as a handler that blocks or a
//! task that spins would stop them.

use std::time::Duration;

use tests::nodes::names;
use tests::threads::freeze;
use tests::{Fault, PATIENCE, Process, Stopwatch, create_nodes, mk_node, stalls};
use tokio::time::timeout;

use crate::scene::{SHORT_LEASE, Scene, lease_writes};
use crate::unread_log::launch_unread;

/// The threads of leader election (rule:lease-never-behind-work). Everything
/// else is the work's.
const OF_THE_LEASE: [&str; 2] = ["leader-election", "lease-watchdog"];
const SLOW: &str = "--use-service-account-credentials=true --kube-api-qps=1 --kube-api-burst=1";
const NODES: usize = 300;
/// Renewals come every 500 ms: this is longer than the lease lasts.
const RENEWALS: usize = 14;
/// Lease duration of [`SHORT_LEASE`].
const LEASE: Duration = Duration::from_secs(6);
/// Longest time for which renewals may fail.
const GAP: Duration = Duration::from_secs(5);

/// Number of Nodes that wait at the same time.
const CROWD: usize = 10_000;
/// Renewals come every two seconds by default.
const RENEWED_WITHIN: Duration = Duration::from_secs(3);

/// A leader whose workers all wait for a throttle that lets one request a second through.
async fn busy_leader(scene: &Scene) -> Process {
    create_nodes(&scene.client, names("n", NODES).map(mk_node)).await;
    let leader = scene.start(&format!("{SHORT_LEASE} {SLOW}")).await;
    let most = f64::from(u32::try_from(NODES / 2).unwrap());
    leader.until_metric("node_ipam_pending_nodes", &[], |nodes| nodes > most).await;
    leader
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_renewed_while_all_workers_wait_and_no_other_thread_runs() {
    let scene = Scene::set().await;
    let leader = busy_leader(&scene).await;
    let frozen = freeze(leader.pid(), |name| !OF_THE_LEASE.contains(&name));
    let renewed = scene.proxy.on(lease_writes()).then(Fault::None);
    renewed.hit(RENEWALS).await;
    let silent = timeout(Duration::from_millis(500), leader.get("/livez")).await;
    assert!(silent.is_err(), "its runtime had a thread to spare: {silent:?}");
    let before = scene.nodes.now().assigned();
    drop(frozen);

    let what = "it goes on as the leader that it still is";
    scene.nodes.until(what, |now| now.assigned() > before).await;
    assert!(leader.is_running());
    let renewals = scene.proxy.requests_like(&lease_writes());
    for pair in renewals.windows(2) {
        let gap = stalls::without(pair[0].arrived, pair[1].arrived);
        assert!(gap < GAP, "{gap:?} between two renewals");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_thread_that_stands_still_ends_the_process_before_its_lease_is_over() {
    let scene = Scene::set().await;
    let leader = busy_leader(&scene).await;
    let frozen = freeze(leader.pid(), |name| name == OF_THE_LEASE[0]);
    let watch = Stopwatch::start();
    let status = leader.exit(PATIENCE).await;
    let took = watch.elapsed();
    assert_eq!(status.code(), Some(1), "{:#?}", leader.lines());
    assert!(took < LEASE, "it ended after {took:?}");
    drop(frozen);
}

/// With the default timings of the lease: one request a second, ten thousand Nodes that wait, a log that
/// is not read, and every thread except the thread of the lease stopped, as if each ran in a circle.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "scripts/accept-host starvation"]
async fn starvation_for_minutes_delays_no_renewal() {
    let seconds = std::env::var("STARVATION_SECONDS").map_or(300, |text| text.parse().unwrap());
    let scene = Scene::set().await;
    create_nodes(&scene.client, names("n", CROWD).map(mk_node)).await;
    let (leader, unread) = launch_unread(&scene, SLOW);
    scene.nodes.until("work has begun", |now| now.assigned() > 0).await;
    let begun = std::time::Instant::now();
    let frozen = freeze(leader.pid(), |name| !OF_THE_LEASE.contains(&name));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    drop(frozen);
    assert!(leader.exit_status().is_none(), "it leads still");
    let renewals = scene.proxy.requests_like(&lease_writes());
    let renewals: Vec<_> = renewals.iter().filter(|it| it.arrived >= begun).collect();
    let gaps = renewals.windows(2).map(|it| stalls::without(it[0].arrived, it[1].arrived));
    let longest = gaps.max().unwrap();
    eprintln!("{} renewals in {seconds} s, at most {longest:?} apart", renewals.len());
    assert!(longest < RENEWED_WITHIN, "{longest:?} between two renewals");
    drop(unread);
}
