//! Each condition of a warm start by itself.

use std::time::Duration;

use informer::{Informer, InformerMetrics};
use kube_api::Node;
use parking_lot::Mutex;
use prometheus::Registry;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::world::{Down, World};
use crate::api::NodeApi;
use crate::options::WarmProof;
use crate::standby::{BEACON, BEACON_LIMIT, Cold, Proving, limit, takes_beacon};

/// A cluster of two Nodes, and a cache of them.
struct Scene {
    world: World,
    nodes: Informer<Node>,
    _stop: DropGuard,
}

impl Scene {
    async fn new() -> Self {
        let scene = Self::of(&["a", "b"]);
        scene.nodes.synced().await;
        // A watch that ends within a second calls for a list.
        sleep(Duration::from_millis(1_500)).await;
        scene
    }

    fn of(names: &[&str]) -> Self {
        let world = World::new(1);
        for name in names {
            world.0.lock().join(name);
        }
        let metrics = InformerMetrics::new(&Registry::new(), "test").unwrap();
        let nodes = Informer::<Node>::of_all(world.client(), &metrics);
        let (running, stop) = (nodes.clone(), CancellationToken::new());
        let stopped = stop.clone();
        tokio::spawn(async move { running.run(stopped).await });
        Self { world, nodes, _stop: stop.drop_guard() }
    }

    fn proving(&self, proof: WarmProof) -> Proving<'_, Node> {
        Proving {
            nodes: &self.nodes,
            proof,
            api: NodeApi::new(self.world.client(), BEACON_LIMIT),
            value: "me/7".to_owned(),
            beacon_until: Mutex::default(),
        }
    }

    async fn beacon(&self) -> Result<(), Cold> {
        self.proving(WarmProof::Beacon).prove(false).await
    }

    /// Nodes that have the annotation of the beacon.
    fn beacons(&self) -> Vec<String> {
        let state = self.world.0.lock();
        let annotated = ["a", "b"].into_iter().filter_map(|name| state.annotation(name, BEACON));
        annotated.collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_beacon_that_the_watch_shows_makes_a_warm_start() {
    let scene = Scene::new().await;
    assert_eq!(scene.beacon().await, Ok(()));
    assert_eq!(scene.beacons(), ["me/7"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_and_changes_nothing() {
    let scene = Scene::new().await;
    // With this seed several answers are lost.
    let before = scene.world.0.lock().etcd.revision;
    scene.world.0.lock().faulty = 50;
    assert_eq!(scene.beacon().await, Ok(()));
    let revision = scene.world.0.lock().etcd.revision;
    assert_eq!(revision, before + 1, "one write is all there is");
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_makes_a_warm_start_without_a_write() {
    let scene = Scene::new().await;
    scene.world.0.lock().renew_lease();
    let begun = Instant::now();
    assert_eq!(scene.proving(WarmProof::Bookmark).prove(false).await, Ok(()));
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(scene.beacons(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_went_back_makes_a_cold_start() {
    let scene = Scene::new().await;
    let proven = scene.proving(WarmProof::Beacon).prove(true).await;
    assert_eq!(proven, Err(Cold::LeaseWentBack));
    assert_eq!(scene.beacons(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_without_a_list_makes_a_cold_start() {
    let scene = Scene::of(&["a", "b"]);
    assert_eq!(scene.beacon().await, Err(Cold::Broken));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_refused_makes_a_cold_start() {
    let scene = Scene::new().await;
    {
        let mut state = scene.world.0.lock();
        state.end_watches(false);
        state.stop_servers(Duration::from_millis(50), Down::Refuse);
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.beacon().await, Err(Cold::Broken), "no list has followed");
    assert_eq!(scene.beacons(), [""; 0], "nothing has to be proven");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_during_the_proof_makes_a_cold_start() {
    let scene = Scene::new().await;
    // After two silent seconds a list would follow.
    scene.world.0.lock().write("b", |_| {});
    sleep(Duration::from_millis(100)).await;
    let refuse = async {
        let mut state = scene.world.0.lock();
        state.end_watches(false);
        state.stop_servers(Duration::from_millis(10), Down::Refuse);
    };
    assert_eq!(futures::join!(scene.beacon(), refuse).0, Err(Cold::Broken));
    assert_eq!(scene.beacons(), ["me/7"], "the watch has shown it");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_nodes_makes_a_cold_start() {
    let scene = Scene::of(&[]);
    scene.nodes.synced().await;
    assert_eq!(scene.beacon().await, Err(Cold::NoNodes));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_behind_makes_a_cold_start_after_a_second() {
    for proof in [WarmProof::Beacon, WarmProof::Bookmark] {
        let scene = Scene::new().await;
        {
            let mut state = scene.world.0.lock();
            state.lag = Duration::from_secs(120);
            // The next watch is of an API server that etcd does not reach.
            state.end_watches(false);
            state.renew_lease();
        }
        sleep(Duration::from_millis(10)).await;
        let begun = Instant::now();
        assert_eq!(scene.proving(proof).prove(false).await, Err(Cold::NoProof), "{proof:?}");
        assert_eq!(begun.elapsed(), limit(proof), "{proof:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn versions_that_fell_make_a_cold_start() {
    for proof in [WarmProof::Beacon, WarmProof::Bookmark] {
        let scene = Scene::new().await;
        {
            let mut state = scene.world.0.lock();
            let snapshot = state.etcd.clone();
            state.snapshots.push(snapshot);
            state.advance(20);
            state.write("b", |_| {});
        }
        sleep(Duration::from_millis(100)).await;
        assert!(scene.world.0.lock().restore_if(|_| true));
        assert_eq!(scene.proving(proof).prove(false).await, Err(Cold::OldProof), "{proof:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_beacon_is_waited_for_at_the_end_of_the_run() {
    let scene = Scene::new().await;
    scene.world.0.lock().stop_servers(Duration::from_secs(60), Down::Hold);
    let (proving, begun) = (scene.proving(WarmProof::Beacon), Instant::now());
    assert_eq!(proving.prove(false).await, Err(Cold::NoProof));
    let until = proving.beacon_until.into_inner();
    assert!(until.is_some_and(|until| until > begun + BEACON_LIMIT), "{until:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_settles_nothing_leaves_the_beacon_open_and_a_refusal_ends_the_proof() {
    for (code, reason, cold, is_open) in [
        (504, "Timeout", Cold::NoProof, true),
        (403, "Forbidden", Cold::Refused, false),
        (422, "Invalid", Cold::Refused, false),
    ] {
        let scene = Scene::new().await;
        scene.world.0.lock().stop_servers(Duration::from_secs(60), Down::Answer(code, reason));
        let proving = scene.proving(WarmProof::Beacon);
        assert_eq!(proving.prove(false).await, Err(cold), "{code}");
        assert_eq!(proving.beacon_until.into_inner().is_some(), is_open, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_selected_gets_no_beacon() {
    let scene = Scene::new().await;
    let nodes = scene.nodes.frozen(|store| store.values().cloned().collect::<Vec<_>>());
    assert!(nodes.iter().all(|node| takes_beacon(node)));
    let other = Node { is_selected: false, ..(*nodes[0]).clone() };
    let going = Node { deleting: true, ..(*nodes[0]).clone() };
    assert!(!takes_beacon(&other) && !takes_beacon(&going));
}
