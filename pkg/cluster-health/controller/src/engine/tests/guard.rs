//! The guard at work: what the targets answer decides whether silent members are published as unreachable.

use std::sync::Arc;
use std::time::Duration;

use events::ObjectRef;
use futures::future::BoxFuture;
use health::{GuardPolicy, Health};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::S;
use super::scene::{Answer, Scene};
use crate::engine::guard;
use crate::engine::guard_targets::{Answers, Guarding, Targets};

/// Targets that answer as they are told.
struct Told(Arc<Mutex<Answers>>);

impl Targets for Told {
    fn references(&self) -> usize {
        self.0.lock().references.len()
    }

    fn ask(&self, _: Duration) -> BoxFuture<'_, Answers> {
        Box::pin(async { self.0.lock().clone() })
    }
}

const KEYS: [&str; 8] = ["ns/a", "ns/b", "ns/c", "ns/d", "ns/e", "ns/f", "ns/g", "ns/h"];

/// Fails later than the others.
const LATE: &str = "ns/late";

/// A guarded scene with eight members, and the answers of its targets: the API server and two references.
async fn scene() -> (Scene, Arc<Mutex<Answers>>) {
    scene_with(&[]).await
}

/// Like [`scene`], with further members.
async fn scene_with(more: &[String]) -> (Scene, Arc<Mutex<Answers>>) {
    let scene = Scene::guarded();
    let answers = Answers { api: true, references: vec![true; 2], local_down: false };
    let answers = Arc::new(Mutex::new(answers));
    let policy = GuardPolicy { ratio: 0.5, min: 5, interval: S(5), timeout: S(2), hold: S(30) };
    let guarding = Guarding { policy, targets: Arc::new(Told(Arc::clone(&answers))) };
    let lease = ObjectRef::new("coordination.k8s.io/v1", "Lease", "shards", "one", "");
    let (clusters, stop) = (Arc::clone(&scene.clusters), scene.clusters.stop.clone());
    tokio::spawn(guard::guard(clusters, guarding, Some(lease), stop));
    for key in KEYS {
        scene.add(key, 1);
    }
    scene.add(LATE, 1);
    for key in more {
        scene.add(key, 1);
    }
    sleep(S(15)).await;
    (scene, answers)
}

fn set(scene: &Scene, answer: Answer) {
    for key in KEYS {
        scene.members.set(key, answer);
    }
}

/// The events with this reason so far.
fn events(scene: &Scene, reason: &str) -> usize {
    scene.api.events().iter().filter(|it| **it == reason).count()
}

/// Whether a member that answered gets an event when it fails.
async fn first_failure_is_told(scene: &Scene) -> bool {
    const FIRST: &str = "RetrievingClusterHealthFailed";
    let before = events(scene, FIRST);
    scene.members.set(LATE, Answer::Unreachable);
    sleep(S(15)).await;
    let told = events(scene, FIRST) - before;
    assert!(told <= 1, "{told}");
    told == 1
}

fn all_are(scene: &Scene, health: Health) -> bool {
    KEYS.into_iter().all(|key| scene.health(key) == Some(health))
}

fn state(scene: &Scene, state: &str) -> u64 {
    scene.metric(&format!("clusterhealth_guard_state{{state=\"{state}\"}} "))
}

/// rule:our-outage-is-not-theirs
#[tokio::test(start_paused = true)]
async fn members_that_a_cut_off_process_cannot_reach_are_unknown_and_never_offline() {
    let (scene, answers) = scene().await;
    *answers.lock() = Answers { api: true, references: vec![false; 2], local_down: false };
    set(&scene, Answer::Unreachable);
    sleep(S(30)).await;
    assert!(all_are(&scene, Health::Ready), "a short partition is not published");
    assert_eq!(state(&scene, "partition"), 1);
    assert!(!first_failure_is_told(&scene).await, "it may be our fault");
    sleep(S(30)).await;
    assert!(all_are(&scene, Health::HubPartition));
    assert_eq!(scene.api.written("ns/a"), Some("HubPartition".to_owned()));
    *answers.lock() = Answers { api: true, references: vec![true; 2], local_down: false };
    set(&scene, Answer::Ok);
    scene.members.set(LATE, Answer::Ok);
    sleep(S(12)).await;
    assert!(all_are(&scene, Health::Ready));
    sleep(S(20)).await;
    assert_eq!((state(&scene, "partition"), state(&scene, "clear")), (0, 1));
    let events = scene.api.events();
    let reasons = |name: &str| events.iter().filter(|it| it.contains(name)).count();
    assert_eq!((reasons("ClusterOffline"), reasons("ClusterReady")), (0, 0), "{events:?}");
    assert!(reasons("HubPartition") > 0 && reasons("HubPartitionEnded") == 1, "{events:?}");
    let episodes = scene.metric("clusterhealth_guard_episodes_total{state=\"partition\"} ");
    assert_eq!(episodes, 1);
    let transitions = "clusterhealth_cluster_transitions_total";
    assert!(!scene.metrics().contains(transitions), "no member changed its state");
}

/// rule:our-outage-is-not-theirs
#[tokio::test(start_paused = true)]
async fn a_short_outage_of_our_network_is_no_bad_time_of_members() {
    let (scene, answers) = scene().await;
    *answers.lock() = Answers { api: true, references: vec![false; 2], local_down: false };
    set(&scene, Answer::Unreachable);
    sleep(S(12)).await;
    // The members answer before the next round of the guard.
    set(&scene, Answer::Ok);
    sleep(S(60)).await;
    *answers.lock() = Answers { api: true, references: vec![true; 2], local_down: false };
    sleep(S(60)).await;
    let bad = |key: &str| {
        let cluster = key.trim_start_matches("ns/");
        scene.number(&format!(
            "clusterhealth_cluster_bad_seconds_total{{cluster=\"{cluster}\",flavour=\"fake\",namespace=\"ns\"}} "
        ))
    };
    for key in KEYS {
        assert_eq!(bad(key), Some(0.0), "{key}");
    }
}

/// rule:our-outage-is-not-theirs
#[tokio::test(start_paused = true)]
async fn members_that_are_silent_while_references_answer_are_published_as_offline() {
    let (scene, _) = scene().await;
    scene.members.set("ns/a", Answer::Unreachable);
    sleep(S(33) + S(2)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Unreachable), "one alone waits for a round");
    set(&scene, Answer::Unreachable);
    sleep(S(33) + S(15)).await;
    assert!(all_are(&scene, Health::Unreachable));
    assert_eq!(state(&scene, "mass-outage"), 1);
    assert_eq!(scene.metric("clusterhealth_guard_waiting "), 0);
    assert!(first_failure_is_told(&scene).await, "the network works");
    assert_eq!(state(&scene, "mass-outage"), 1);
    assert!(scene.metrics().contains("clusterhealth_cluster_transitions_total"));
}

/// rule:our-outage-is-not-theirs
#[tokio::test(start_paused = true)]
async fn an_outage_of_most_members_is_stored_as_fast_as_writes_go_and_touches_no_other_member() {
    const PERIODS: u64 = 6;
    const WRITES_PER_SECOND: usize = 32;
    let members: Vec<_> = (0..1000).map(|number| format!("ns/m{number}")).collect();
    let (silent, others) = members.split_at(600);
    let (scene, _) = scene_with(&members).await;
    // 64 at once.
    scene.api.delay_writes(S(2));
    let writes = scene.api.writes();
    for key in silent {
        scene.members.set(key, Answer::Unreachable);
    }
    let decided = |key: &String| scene.health(key) == Some(Health::Unreachable);
    sleep(S(PERIODS * 10)).await;
    assert!(silent.iter().all(decided), "not all are decided in {PERIODS} periods");
    let stored = |key: &String| scene.api.written(key).as_deref() == Some("Unreachable");
    sleep(S(2 + u64::try_from(silent.len() / WRITES_PER_SECOND).unwrap())).await;
    assert!(silent.iter().all(stored), "not all are stored");
    assert_eq!(scene.api.writes(), writes + silent.len(), "each of them once, and no other one");
    assert!(others.iter().all(|key| scene.health(key) == Some(Health::Ready)));
    assert!(others.iter().all(|key| scene.api.written(key).as_deref() == Some("Ready")));
}
