//! The API server is there and its store is not: a PATCH with a deadline of the server's own is not
//! applied after the reads that settle it (`rule:unknown-outcome-ends`), and the product that rests on
//! this gives no block to two Nodes, however often the store stands still.

use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rand::RngExt as _;
use serde_json::json;
use tests::{Allocator, Cluster, PATIENCE, mk_node};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::scene::{SHORT_LEASE, Scene, patch_of, settled};

/// Timeout in the URL of the PATCH.
const DEADLINE: Duration = Duration::from_secs(1);
/// Time that the product adds to the timeout for the network.
const TRANSIT: Duration = Duration::from_secs(1);
/// Between the first two of the reads that settle it.
const AFTERMATH: Duration = Duration::from_secs(1);
/// Longer than what is under way between the API server and its store can take.
const LONG_AFTER: Duration = Duration::from_millis(500);

/// How often the store stands still in each test; more with `$FROZEN_ROUNDS`.
fn rounds() -> u32 {
    std::env::var("FROZEN_ROUNDS").map_or(4, |text| text.parse().expect("a number"))
}

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
    for round in 0..rounds() {
        let name = format!("n-{round}");
        let node = mk_node(&*name).create(&client).await;
        let uid = node.metadata.uid.unwrap();

        let frozen = cluster.freeze_store();
        let sent = Instant::now();
        let cidr = format!("10.{}.{}.0/24", round / 256, round % 256);
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
        // The read waits at the store together with the rest of the PATCH, and may overtake it.
        assert!(!read.is_finished(), "{name}: a store that stands still was read");
        drop(frozen);
        let overtook = read.await.unwrap().is_none();
        sleep_until(Instant::now() + AFTERMATH).await;
        let second = cidr_of(&nodes, &name).await;
        let third = cidr_of(&nodes, &name).await;
        late += usize::from(overtook && third.is_some());
        applied += usize::from(third.is_some());
        sleep(LONG_AFTER).await; // nothing announces that something does not happen
        let later = cidr_of(&nodes, &name).await;
        let reads = (overtook, second.is_none(), third.is_none());
        assert_eq!(later, third, "{name} changed after the reads, which were empty: {reads:?}");
    }
    let rounds = rounds();
    println!(
        "{applied} of {rounds} were applied when the store went on, {late} after the first read"
    );
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

/// The pool has one block more than there are Nodes at once.
const AT_ONCE: [&str; 3] = ["a", "b", "c"];

#[tokio::test(flavor = "multi_thread")]
async fn blocks_whose_patches_met_a_frozen_store_are_not_given_to_the_next_nodes() {
    let scene = Scene::set().await;
    let args = format!("{SHORT_LEASE} --cluster-cidr=10.0.0.0/22");
    let manager = scene.start_leader(&args).await;
    let mut random = tests::seed::random("FROZEN_SEED");
    let mut unknown = 0;
    for round in 0..rounds() {
        let names = AT_ONCE.map(|name| format!("{name}-{round}"));
        let holds = names.each_ref().map(|name| scene.proxy.on(patch_of(name)).times(1).hold());
        for (name, hold) in names.iter().zip(&holds) {
            scene.mk_node(name).create(&scene.client).await;
            hold.arrived(1).await;
        }
        let frozen = scene.cluster.freeze_store();
        for hold in holds {
            hold.release();
        }
        // Once after the server has given up the PATCHes, later before that, too. The lease would last 5 s.
        let least = if round == 0 { 1_500 } else { 100 };
        sleep(Duration::from_millis(random.random_range(least..3_000))).await;
        drop(frozen);
        // One goes while its outcome may be open, and leaves its block.
        let gone = random.random_range(0..AT_ONCE.len());
        scene.remove(&names[gone]).await;
        for name in names.iter().filter(|name| **name != names[gone]) {
            scene.assigned(name).await;
            scene.remove(name).await;
        }
        // Only an unknown outcome is read.
        unknown += names.iter().filter(|name| scene.methods(name).contains(&Method::GET)).count();
    }
    println!("the outcomes of {unknown} PATCHes were unknown");
    assert!(unknown > 0, "the store was never frozen for long enough");
    settled(&manager).await;
    scene.add("last").await;
    scene.end();
}
