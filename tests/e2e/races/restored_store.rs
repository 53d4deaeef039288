//! etcd is restored from a snapshot under the running product: resource versions go back, Nodes
//! vanish and come back, and nothing that was learnt since the snapshot holds.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use tests::control_plane::{ControlPlane, Options};
use tests::nodes::{delete_node, set_cidrs};
use tests::{Process, Stopwatch, mk_node, poll};

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
    manager.line("history went back").await;
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
