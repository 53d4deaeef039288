//! No Lease at start: a leader may exist all the same (rule:lease-absent-is-not-free).

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use tests::{Match, mk_node, stalls};

use crate::scene::{AT_ONCE, SHORT_LEASE, Scene, launch, writes};

const ARGS: &str = "--use-service-account-credentials=true";
const LEADS: &str = "Successfully acquired lease";

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_process_does_not_lead_while_a_process_with_a_deleted_lease_leads() {
    let scene = Scene::set().await;
    let args = format!("{SHORT_LEASE} {ARGS}");
    let first = scene.start(&args).await;
    scene.serves("a").await;
    // From here on it can do all but renew.
    let renewals = scene.proxy.on(Match::leases()).hold();
    renewals.arrived(1).await;
    let leases = Api::<Lease>::namespaced(scene.client.clone(), "kube-system");
    leases.delete("infra-controller-manager", &DeleteParams::default()).await.unwrap();

    let other = scene.another_proxy().await;
    let second = launch(&other, &args);
    second.line("in case another instance still leads").await;
    second.line(LEADS).await;
    assert_eq!(first.exit(AT_ONCE).await.code(), Some(1), "it has lost its lease");
    let looks = other.requests_like(&Match::leases());
    let written = other.requests_like(&writes());
    let waited = written[0].arrived - looks[0].arrived;
    assert!(waited >= Duration::from_secs(6), "it wrote {waited:?} after its first look");
    scene.serves("b").await;
    renewals.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_nodes_is_led_at_once() {
    let scene = Scene::set().await;
    let manager = launch(&scene.proxy, ARGS);
    manager.line(LEADS).await;
    let requests = scene.proxy.requests_like(&Match::leases());
    let took = stalls::without(requests[0].arrived, requests[1].arrived);
    assert_eq!(requests[1].request.method, http::Method::POST);
    assert!(took < Duration::from_secs(5), "{took:?} with a lease of 15 s and no leader before");
    mk_node("a").create(&scene.client).await;
    scene.nodes.until("a is served", |now| now.assigned() == 1).await;
}

/// A leader whose Lease was deleted may be about to send the first pod CIDR.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_whose_nodes_have_no_cidr_yet_is_led_after_a_lease_duration() {
    let scene = Scene::set().await;
    mk_node("a").create(&scene.client).await;
    let manager = launch(&scene.proxy, &format!("{SHORT_LEASE} {ARGS}"));
    manager.line("in case another instance still leads").await;
    manager.line(LEADS).await;
    let looks = scene.proxy.requests_like(&Match::leases());
    let written = scene.proxy.requests_like(&writes());
    let waited = written[0].arrived - looks[0].arrived;
    assert!(waited >= Duration::from_secs(6), "it wrote {waited:?} after its first look");
    scene.nodes.until("a is served", |now| now.assigned() == 1).await;
}
