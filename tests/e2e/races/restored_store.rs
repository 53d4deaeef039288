//! etcd is restored from a snapshot under the running product: resource versions go back, Nodes
//! vanish and come back, and nothing that was learnt since the snapshot holds.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use tests::control_plane::{ControlPlane, MANAGER_USER, Options};
use tests::nodes::{delete_node, set_cidrs};
use tests::{Fault, FaultProxy, Match, Process, Stopwatch, mk_node, poll};

use crate::scene::patch_of;

/// Backoff of an unreachable server, three lists that agree, and the restart of the controller.
const LIMIT: Duration = Duration::from_secs(60);

async fn cidr_of(client: &Client, name: &str) -> String {
    let nodes = Api::<Node>::all(client.clone());
    poll(&format!("{name} has a pod CIDR"), async || {
        let found = nodes.get_opt(name).await.ok().flatten();
        found.and_then(|node| node.spec?.pod_cidr)
    })
    .await
}

async fn add(client: &Client, name: &str) -> String {
    mk_node(name).create(client).await;
    cidr_of(client, name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_restored_from_a_snapshot_is_taken_for_what_it_is() {
    let mut plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await;
    // Four blocks.
    let manager = Process::with_kubeconfig(&plane.manager_kubeconfig())
        .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true", "--v=2"])
        .args(["--leader-elect=false", "--cluster-cidr=10.0.0.0/22"])
        .start();
    let a = add(&client, "a").await;
    let b = add(&client, "b").await;
    let snapshot = plane.snapshot_with(&b).await;

    // All of this will not have happened: b is gone and its block with another Node.
    delete_node(&client, "b").await;
    for name in ["c", "d", "e"] {
        add(&client, name).await;
    }
    for _ in 0..30 {
        set_cidrs(&client, "a", &[&a]).await.unwrap();
        drop(mk_node("noise").create(&client).await);
        delete_node(&client, "noise").await;
    }

    let began = Stopwatch::start();
    plane.restore(&snapshot).await.unwrap();
    let client = plane.client().await;
    manager.line("history of the API server went back").await;
    // Two blocks are free: those of Nodes that never were.
    for name in ["x", "y"] {
        add(&client, name).await;
    }
    let took = began.elapsed();
    assert!(took < LIMIT, "it took {took:?}");
    let nodes = Api::<Node>::all(client).list(&ListParams::default()).await.unwrap();
    let cidrs: Vec<_> =
        nodes.items.iter().filter_map(|n| n.spec.as_ref()?.pod_cidr.clone()).collect();
    let distinct: BTreeSet<_> = cidrs.iter().collect();
    assert_eq!((cidrs.len(), distinct.len()), (4, 4), "{cidrs:?}");
    assert!(cidrs.contains(&a) && cidrs.contains(&b), "{cidrs:?} without {a} or {b}");
}

async fn version(client: &Client) -> u64 {
    let list = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    list.metadata.resource_version.unwrap().parse().unwrap()
}

async fn make_noise(client: &Client) {
    drop(mk_node("noise").create(client).await);
    delete_node(client, "noise").await;
}

/// etcd loses its last seconds while the API server is down, and passes the version that the product
/// knows before the product can read Nodes again. Its watch is accepted then, the newest version is a
/// higher one, and a Node that came back has a block that the product has reserved for another.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_went_back_and_was_overtaken_brings_no_duplicate() {
    let mut plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await;
    let proxy = FaultProxy::start(&plane, MANAGER_USER, &[]).await;
    let refused = proxy.on(patch_of("waiting")).then(Fault::status(503));
    // Four blocks.
    let manager = Process::with_kubeconfig(proxy.kubeconfig())
        .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true", "--v=2"])
        .args(["--leader-elect=false", "--cluster-cidr=10.0.0.0/22"])
        .start();
    for name in ["a", "c", "d"] {
        add(&client, name).await;
    }
    let returning = add(&client, "returning").await;
    let waiting = mk_node("waiting").create(&client).await;
    let snapshot = plane.snapshot_with(&waiting.metadata.uid.unwrap()).await;

    // All of this will not have happened: the block is free, and reserved for the Node that waits.
    delete_node(&client, "returning").await;
    refused.hit(1).await;
    for _ in 0..100 {
        make_noise(&client).await;
    }
    let known = version(&client).await;
    let unread = proxy
        .on(Match::node_lists().and(|request| request.parameter("limit") != Some("1")))
        .then(Fault::status(503));
    let unwatched = proxy.on(Match::node_watches()).then(Fault::status(503));

    plane.restore(&snapshot).await.unwrap();
    let client = plane.client().await;
    assert!(version(&client).await < known, "too little was lost");
    let sent = proxy.requests_like(&patch_of("waiting")).len();
    refused.remove();
    while version(&client).await < known + 20 {
        make_noise(&client).await;
    }
    unread.remove();
    unwatched.remove();
    manager.line("history of the API server went back").await;
    let state = [("state", "starved")];
    manager
        .until_metric("node_ipam_pending_nodes", &state, |nodes| (nodes - 1.0).abs() < 0.1)
        .await;
    let nodes = Api::<Node>::all(client.clone());
    let waits = nodes.get("waiting").await.unwrap().spec.unwrap_or_default();
    assert_eq!(waits.pod_cidr, None, "{returning} is that of the Node that came back");
    let sent_in_doubt = proxy.requests_like(&patch_of("waiting")).len() - sent;
    assert_eq!(sent_in_doubt, 0, "nothing may be sent while the history is in doubt");

    delete_node(&client, "returning").await;
    assert_eq!(cidr_of(&client, "waiting").await, returning);
}
