//! The API server is there and its store is not: a PATCH with a deadline of the server's own is not
//! applied after the reads that settle it (`rule:unknown-outcome-ends`).

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tests::{Allocator, Cluster, PATIENCE, mk_node};
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

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_past_its_deadline_does_not_show_after_the_reads_that_settled_it() {
    let cluster = tests::cluster().await;
    let client = one_try_client(&cluster).await;
    let nodes = Api::<Node>::all(client.clone());
    let (mut applied, mut late) = (0, 0);
    for round in 0..10 {
        let name = format!("n-{round}");
        let node = mk_node(&*name).create(&client).await;
        let uid = node.metadata.uid.unwrap();

        let frozen = cluster.freeze_store();
        let sent = Instant::now();
        let cidr = format!("10.0.{round}.0/24");
        // The server gives up by itself, and says so: its deadline has passed then, however long
        // the way there was.
        let ended = timeout(PATIENCE, patch(&client, &name, &uid, &cidr)).await;
        let ended = ended.expect("the server gives up by itself");
        assert!(ended.is_err(), "{name}: nothing can be stored, yet the answer is {ended:?}");
        sleep_until(sent + DEADLINE + TRANSIT).await;
        let read = tokio::spawn({
            let (nodes, name) = (nodes.clone(), name.clone());
            async move { cidr_of(&nodes, &name).await }
        });
        // The read waits at the store, beside what is left of the PATCH, and may overtake it.
        assert!(!read.is_finished(), "{name}: a store that stands still was read");
        drop(frozen);
        let overtook = read.await.unwrap().is_none();
        sleep_until(Instant::now() + AFTERMATH).await;
        let second = cidr_of(&nodes, &name).await;
        let third = cidr_of(&nodes, &name).await;
        late += usize::from(overtook && third.is_some());
        applied += usize::from(third.is_some());
        tokio::time::sleep(LONG_AFTER).await; // nothing announces that something does not happen
        let later = cidr_of(&nodes, &name).await;
        let reads = (overtook, second.is_none(), third.is_none());
        assert_eq!(later, third, "{name} changed after the reads, which were empty: {reads:?}");
    }
    println!("{applied} of 10 were applied when the store went on, {late} after the first read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_patch_met_a_frozen_store_is_served_when_the_store_goes_on() {
    for allocator in Allocator::ALL {
        frozen_store_is_survived(allocator).await;
    }
}

async fn frozen_store_is_survived(allocator: Allocator) {
    let scene = Scene::set_for(allocator).await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/22").await;
    let hold = scene.proxy.on(patch_of("a")).times(1).hold();
    scene.mk_node("a").create(&scene.client).await;
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
