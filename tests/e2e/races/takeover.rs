//! A new leader and what the dead one may have left on the wire.

use std::time::Duration;

use tests::{FaultProxy, Match, mk_node};

use crate::scene::{Scene, first_answered, launch, lease_renewals, patch_of};

/// A PATCH may take 2 s.
const ARGS: &str = "--leader-elect-lease-duration=5s --leader-elect-renew-deadline=3s \
     --leader-elect-retry-period=500ms --cluster-cidr=10.0.0.0/22";
const PATCH_TIMEOUT: Duration = Duration::from_secs(2);

/// From the write that made the process behind this proxy the leader to its first list.
fn lease_to_list(proxy: &FaultProxy) -> Duration {
    let lease = first_answered(proxy, &lease_renewals()).expect("it leads");
    let list = proxy.requests_like(&Match::node_lists()).into_iter().next().expect("it has listed");
    list.arrived - lease.settled.expect("answered")
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_expired_lease_the_list_waits_until_no_old_patch_can_arrive() {
    let scene = Scene::set().await;
    let first = scene.start_leader(ARGS).await;
    let waited = lease_to_list(&scene.proxy);
    assert!(waited < PATCH_TIMEOUT, "there was nobody to wait for, yet it waited {waited:?}");

    let late = scene.proxy.on(patch_of("a")).hold();
    mk_node("a").create(&scene.client).await;
    late.arrived(1).await;
    first.kill();
    let second_proxy = scene.another_proxy().await;
    let second = launch(&second_proxy, ARGS);
    mk_node("b").create(&scene.client).await;
    second.line("Taking over from a leader").await;
    // The dead leader's PATCH, carried out as late as it can be.
    late.release();
    assert_eq!(scene.assigned("a").await, ["10.0.0.0/24"]);
    assert_eq!(scene.assigned("b").await, ["10.0.1.0/24"]);
    let waited = lease_to_list(&second_proxy);
    assert!(waited >= PATCH_TIMEOUT, "listed {waited:?} after it got the lease");
    scene.end_with(&[], &[&second_proxy]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_released_lease_the_next_leader_starts_at_once() {
    let scene = Scene::set().await;
    let first = scene.start_leader(ARGS).await;
    scene.add("a").await;
    let second_proxy = scene.another_proxy().await;
    let second = launch(&second_proxy, ARGS);
    second.line("New leader elected").await;
    first.terminate();
    assert!(first.exit(Duration::from_secs(15)).await.success());
    second.line("Controller starting...").await;
    let waited = lease_to_list(&second_proxy);
    assert!(waited < PATCH_TIMEOUT, "nothing can be on its way, yet it waited {waited:?}");
    assert_eq!(scene.add("b").await, ["10.0.1.0/24"]);
    scene.end_with(&[], &[&second_proxy]);
}
