//! The API server is there and its store is not: a PATCH with a deadline of the server's own is not
//! applied after the reads that settle it (`rule:unknown-outcome-ends`).

use std::time::Duration;

use futures::future::join_all;
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use parking_lot::Mutex;
use serde_json::json;
use tests::{Cluster, PATIENCE, mk_node};
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep_until, timeout};

use crate::scene::{Scene, patch_of, settled};

/// What the URL of the PATCH asks for.
const DEADLINE: Duration = Duration::from_secs(1);
/// What the product adds to it for the way.
const TRANSIT: Duration = Duration::from_secs(1);
/// Between the first two of the reads that settle it.
const AFTERMATH: Duration = Duration::from_secs(1);
/// Longer than what is under way between the API server and its store can take.
const LONG_AFTER: Duration = Duration::from_millis(500);

/// A client that sends every request once.
async fn one_try_client(cluster: &Cluster) -> Client {
    let file = Kubeconfig::read_from(cluster.admin_kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Sends the PATCH as the product does and returns how it ended.
async fn patch(client: &Client, node: &str, uid: &str, cidr: &str) -> kube::Result<String> {
    let body = json!({"metadata": {"uid": uid}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}});
    let request = Request::patch(format!("/api/v1/nodes/{node}?timeout={}s", DEADLINE.as_secs()))
        .header("content-type", "application/strategic-merge-patch+json")
        .body(body.to_string().into_bytes())
        .unwrap();
    client.request_text(request).await
}

/// A consistent read.
async fn cidr_of(nodes: &Api<Node>, name: &str) -> Option<String> {
    nodes.get(name).await.unwrap().spec.unwrap_or_default().pod_cidr
}

/// What reads show of a Node whose PATCH ran out of its time in front of a frozen store.
struct Settled {
    overtook: bool,
    reads: [Option<String>; 2],
    later: Option<String>,
}

/// Sends a PATCH to a store that `thaw` lets go on, and reads the Node as the product does.
async fn patch_a_frozen_store(
    client: &Client,
    (name, uid, cidr): (&str, &str, &str),
    thaw: impl AsyncFnOnce(),
) -> Settled {
    let nodes = Api::<Node>::all(client.clone());
    let sent = Instant::now();
    // The server gives up by itself, and says so: its deadline has passed then, however long
    // the way there was.
    let ended = timeout(PATIENCE, patch(client, name, uid, cidr)).await;
    let ended = ended.expect("the server gives up by itself");
    assert!(ended.is_err(), "{name}: nothing can be stored, yet the answer is {ended:?}");
    sleep_until(sent + DEADLINE + TRANSIT).await;
    let read = tokio::spawn({
        let (nodes, name) = (nodes.clone(), name.to_owned());
        async move { cidr_of(&nodes, &name).await }
    });
    // The read waits at the store like what is left of the PATCH, and may overtake it.
    assert!(!read.is_finished(), "{name}: a store that stands still was read");
    thaw().await;
    let overtook = read.await.unwrap().is_none();
    sleep_until(Instant::now() + AFTERMATH).await;
    let reads = [cidr_of(&nodes, name).await, cidr_of(&nodes, name).await];
    tokio::time::sleep(LONG_AFTER).await; // nothing announces that something does not happen
    Settled { overtook, reads, later: cidr_of(&nodes, name).await }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_past_its_deadline_does_not_show_after_the_reads_that_settled_it() {
    const NODES: usize = 8;
    let cluster = tests::cluster().await;
    let client = one_try_client(&cluster).await;
    let (mut applied, mut late) = (0, 0);
    for round in 0..2 {
        let mut made = Vec::new();
        for node in 0..NODES {
            let name = format!("n-{round}-{node}");
            let uid = mk_node(&*name).create(&client).await.metadata.uid.unwrap();
            made.push((name, uid, format!("10.{round}.{node}.0/24")));
        }
        let frozen = Mutex::new(Some(cluster.freeze_store()));
        // The store goes on when all reads wait at it.
        let all_read = Barrier::new(NODES);
        let rounds = made.iter().map(async |(name, uid, cidr)| {
            let thaw = async || {
                all_read.wait().await;
                drop(frozen.lock().take());
            };
            (name, patch_a_frozen_store(&client, (name, uid, cidr), thaw).await)
        });
        for (name, Settled { overtook, reads, later }) in join_all(rounds).await {
            late += usize::from(overtook && reads[1].is_some());
            applied += usize::from(reads[1].is_some());
            assert_eq!(later, reads[1], "{name} changed after the reads: {overtook}, {reads:?}");
        }
    }
    println!("{applied} of 16 were applied when the store went on, {late} after the first read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_patch_met_a_frozen_store_is_served_when_the_store_goes_on() {
    let scene = Scene::set().await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/22").await;
    let hold = scene.proxy.on(patch_of("a")).times(1).hold();
    mk_node("a").create(&scene.client).await;
    hold.arrived(1).await;
    let frozen = scene.cluster.freeze_store();
    let read = scene.proxy.on(tests::Match::node_gets()).then(tests::Fault::None);
    hold.release();
    read.hit(1).await;
    drop(frozen);
    assert_eq!(scene.assigned("a").await, ["10.0.0.0/24"]);
    settled(&manager).await;
    assert_eq!(scene.add("b").await, ["10.0.1.0/24"]);
    scene.end();
}
