//! The lease is given back after the last write is settled, and only then
//! (`rule:stop-settles-outcomes`).

use std::time::Duration;

use tests::fault_proxy::Hold;
use tests::nodes::names;
use tests::{Cut, Fault, Match, Process, create_nodes, eventually, mk_node, poll, stalls};

use crate::scene::{SHORT_LEASE, Scene, lease_releases, lease_renewals, patch_of};

/// A PATCH may take 5 s: long enough to look at the lease meanwhile.
const LONG_PATCH: &str = "--leader-elect-lease-duration=10s --leader-elect-renew-deadline=5s \
     --leader-elect-retry-period=500ms --cluster-cidr=10.0.0.0/22";
/// Time limit of an exit on a busy machine.
const EXIT: Duration = tests::PATIENCE;
/// Longer than anything is on its way, but for a machine that stands still.
const WAY: Duration = Duration::from_secs(5);

/// A leader that is asked to stop while its PATCH of `a` is open, and has heard it.
async fn stopping(scene: &Scene, args: &str, hold: impl FnOnce(&Scene) -> Hold) -> (Process, Hold) {
    let leader = scene.start_leader(args).await;
    let hold = hold(scene);
    mk_node("a").create(&scene.client).await;
    hold.arrived(1).await;
    leader.terminate();
    let unready = async || (!matches!(leader.get("/readyz").await, Ok((200, _)))).then_some(());
    poll("the leader is unready", unready).await;
    (leader, hold)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_released_after_the_open_patch_is_answered_and_not_before() {
    // On a machine that stands still the PATCH runs out of its time meanwhile: then once more.
    for _ in 0..5 {
        if lease_outlasts_an_open_patch().await {
            return;
        }
    }
    panic!("the PATCH was never answered within its 5 s");
}

/// False when the PATCH could not be answered in time.
async fn lease_outlasts_an_open_patch() -> bool {
    let scene = Scene::set().await;
    let hold = |scene: &Scene| scene.proxy.on(patch_of("a")).hold();
    let (leader, hold) = stopping(&scene, LONG_PATCH, hold).await;
    // It goes on leading until the PATCH is settled, and begins nothing new.
    let kept = scene.proxy.on(lease_renewals()).then(Fault::None);
    mk_node("b").create(&scene.client).await;
    eventually("the lease is renewed twice", || kept.hits() >= 2 || !leader.is_running()).await;
    let holder = scene.holder().await;
    hold.release();
    if scene.patches("a")[0].arrived.elapsed() > Duration::from_secs(4) {
        return false;
    }
    assert!(!holder.is_empty(), "the lease was given back while a PATCH was open");
    assert!(leader.exit(EXIT).await.success());
    assert_eq!(scene.holder().await, "");

    let patches = scene.proxy.node_patches();
    assert_eq!(patches.len(), 1, "nothing is begun after the signal: {patches:?}");
    assert_eq!(scene.assigned("a").await, patches[0].pod_cidrs);
    let releases = scene.proxy.requests_like(&lease_releases());
    assert_eq!(releases.len(), 1);
    assert!(releases[0].arrived > patches[0].settled.expect("answered"));
    scene.end();
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_patch_is_never_answered_reads_the_node_and_gives_its_lease_back() {
    let scene = Scene::set().await;
    let args = format!("{SHORT_LEASE} --cluster-cidr=10.0.0.0/22");
    let hold = |scene: &Scene| scene.proxy.on(patch_of("a")).hold();
    let (leader, _hold) = stopping(&scene, &args, hold).await;
    settled_and_released(&scene, &leader, Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_that_the_server_left_open_are_settled_before_the_lease_is_given_back() {
    let scene = Scene::set().await;
    let leader = scene.start_leader(LONG_PATCH).await;
    let failing = scene.proxy.on(Match::node_patches()).then(Fault::status(500));
    create_nodes(&scene.client, names("n", 10).map(mk_node)).await;
    failing.hit(20).await;
    leader.terminate();
    settled_and_released(&scene, &leader, Duration::from_secs(5)).await;
    scene.end();
}

/// The leader ends and gives its lease back, not before the server can no longer apply what was
/// sent and a read has shown it.
async fn settled_and_released(scene: &Scene, leader: &Process, patch_timeout: Duration) {
    assert!(leader.exit(EXIT).await.success());
    assert_eq!(scene.holder().await, "");
    let releases = scene.proxy.requests_like(&lease_releases());
    for patch in scene.proxy.node_patches() {
        let reads = Match::node_gets().path(&format!("/api/v1/nodes/{}", patch.node));
        let last = scene.proxy.requests_like(&reads).pop().expect("the Node is read");
        let sent = patch.arrived.checked_sub(WAY).expect("the machine has been up for longer");
        let late = stalls::lost(sent, patch.arrived);
        let read = last.arrived + late;
        assert!(read > patch.arrived + patch_timeout, "it could still be applied: {patch:?}");
        assert!(last.settled.expect("answered") < releases[0].arrived);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_learn_what_became_of_its_patch_leaves_its_lease_to_expire() {
    let scene = Scene::set().await;
    // Not applied, so the watch says nothing; a read would tell, were it answered.
    scene.proxy.on(Match::node_gets()).then(Fault::Reset(Cut::Stream));
    let leader = scene.start_leader(LONG_PATCH).await;
    let lost = scene.proxy.on(patch_of("a")).times(1).then(Fault::Reset(Cut::Stream));
    mk_node("a").create(&scene.client).await;
    lost.hit(1).await;
    leader.terminate();
    left_to_expire(&scene, &leader).await;
    scene.end();
}

async fn left_to_expire(scene: &Scene, leader: &Process) {
    let status = leader.exit(EXIT).await;
    assert!(status.success(), "a requested stop ends with 0, not {status}");
    assert!(scene.proxy.requests_like(&lease_releases()).is_empty(), "the lease was given back");
    assert!(!scene.holder().await.is_empty());
    let reported = |line: &&String| line.contains("writes of unknown outcome");
    assert_eq!(leader.lines().iter().filter(reported).count(), 1, "one line says so");
}
