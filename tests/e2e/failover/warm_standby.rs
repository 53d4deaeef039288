//! A leader is killed while another replica has a warm cache of the Nodes.

use std::time::{Duration, Instant};

use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tests::control_plane::MANAGER_USER;
use tests::{
    Allocator, Cluster, Fault, FaultProxy, Match, Observer, Process, Vms, assert_never_shared,
    cluster, create_nodes, eventually, mk_node,
};
use tokio_util::task::AbortOnDropHandle;

use crate::LONG;

const ARGS: &str = "--cluster-cidr=10.0.0.0/16 --node-cidr-mask-size=28";
const NODES: usize = 40;

/// A leader that has served all Nodes, and a standby with a warm cache.
struct Pair {
    client: Client,
    nodes: Observer,
    vms: Option<Vms>,
    leader: Replica,
    standby: Replica,
    /// Changes a Node all the time: a watch without events proves nothing to a bookmark.
    _touching: AbortOnDropHandle<()>,
    _cluster: Cluster,
}

struct Replica {
    manager: Process,
    proxy: FaultProxy,
}

impl Replica {
    async fn start(
        cluster: &Cluster,
        allocator: Allocator,
        vms: Option<&Vms>,
        proof: &str,
    ) -> Self {
        let proxy = FaultProxy::start(cluster, MANAGER_USER, &[]).await;
        let launch = Process::with_kubeconfig(proxy.kubeconfig())
            .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true"])
            .args(["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s"])
            .args(["--leader-elect-retry-period=500ms", allocator.flag(), "--warm-standby"])
            .args([proof])
            .args(ARGS.split_whitespace());
        let launch = match vms {
            Some(vms) => vms.equip(launch, ARGS),
            None => launch,
        };
        Self { manager: launch.start(), proxy }
    }

    fn node_lists(&self) -> usize {
        self.proxy.requests_like(&Match::node_lists()).len()
    }

    fn node_pages(&self) -> usize {
        self.proxy.requests_like(&Match::node_lists().query_contains("500")).len()
    }
}

async fn create(client: &Client, vms: Option<&Vms>, names: impl Iterator<Item = String>) {
    let new = |name: String| match vms {
        Some(vms) => vms.node(&name),
        None => mk_node(name),
    };
    create_nodes(client, names.map(new).collect::<Vec<_>>()).await;
}

async fn touch(nodes: Api<Node>) {
    for nth in 0_u64.. {
        let patch = json!({"metadata": {"annotations": {"touched": nth.to_string()}}});
        drop(nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(&patch)).await);
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

impl Pair {
    async fn start(allocator: Allocator, proof: &str) -> Self {
        let cluster = cluster().await;
        allocator.prepare(&cluster).await;
        let client = cluster.client().await;
        let nodes = Observer::start(&client).await;
        let vms = match allocator {
            Allocator::Cloud => Some(Vms::start().await),
            _ => None,
        };
        let leader = Replica::start(&cluster, allocator, vms.as_ref(), proof).await;
        leader.manager.line("Successfully acquired lease").await;
        create(&client, vms.as_ref(), (0..NODES).map(|nth| format!("node-{nth}"))).await;
        nodes.until_within(LONG, "all have a block", |now| now.assigned() == NODES).await;
        let touching = tokio::spawn(touch(Api::all(client.clone())));
        let touching = AbortOnDropHandle::new(touching);
        let standby = Replica::start(&cluster, allocator, vms.as_ref(), proof).await;
        let is_watching = || standby.proxy.watches("/api/v1/nodes").count() > 0;
        eventually("the standby watches the Nodes", is_watching).await;
        let synced = [("resource", "nodes")];
        standby.manager.until_metric("icm_informer_objects", &synced, |now| now > 39.5).await;
        Self { client, nodes, vms, leader, standby, _touching: touching, _cluster: cluster }
    }

    /// Kills the leader, and makes Nodes that no one serves before the standby leads.
    async fn fail_over(&self) {
        self.leader.manager.kill();
        let late = (0..2).map(|nth| format!("late-{nth}"));
        create(&self.client, self.vms.as_ref(), late).await;
        self.standby.manager.line("Successfully acquired lease").await;
    }

    /// Waits until all Nodes are served, and returns the time from the winning write of the Lease to the
    /// first PATCH of a pod CIDR.
    async fn until_served(&self) -> Duration {
        let all = NODES + 2;
        self.nodes.until_within(LONG, "all have a block", |now| now.assigned() == all).await;
        assert_never_shared(&self.nodes.history(), &[]);
        let first = self.standby.proxy.node_patches()[0].arrived;
        let writes = self.standby.proxy.requests_like(&Match::leases());
        let won = writes.iter().filter(|it| it.request.method == Method::PUT);
        let won: Instant = won.map(|it| it.arrived).next().unwrap();
        first - won
    }

    async fn assert_result(&self, result: &str) {
        let labels = [("result", result)];
        let count = self.standby.manager.metric("icm_warm_start_total", &labels).await;
        assert_eq!(count, Some(1.0), "{result}");
    }

    /// Bodies of PATCHes that write the beacon.
    fn beacons(&self) -> Vec<serde_json::Value> {
        let beacons = Match::node_patches().body_contains("infra-controller-manager/leader");
        let sent = self.standby.proxy.requests_like(&beacons);
        sent.iter().map(|it| it.request.json()).collect()
    }
}

/// A leader that was killed, and a standby that starts warm. On a machine with too much work the proof takes
/// longer than its limit; then once more.
async fn warm_start(allocator: Allocator, proof: &str) -> (Pair, [usize; 2]) {
    for _ in 0..3 {
        let pair = Pair::start(allocator, proof).await;
        let lists = [pair.standby.node_lists(), pair.standby.node_pages()];
        assert!(pair.beacons().is_empty() && pair.standby.proxy.node_patches().is_empty());
        pair.fail_over().await;
        let took = pair.until_served().await;
        eprintln!("{allocator:?}: first PATCH {took:?} after the Lease was won");
        let warm = [("result", "warm")];
        if pair.standby.manager.metric("icm_warm_start_total", &warm).await == Some(1.0) {
            return (pair, lists);
        }
    }
    panic!("three starts were cold");
}

async fn a_warm_standby_lists_no_nodes(allocator: Allocator) {
    let (pair, [lists, _]) = warm_start(allocator, "--warm-proof=beacon").await;
    assert_eq!(pair.standby.node_lists(), lists, "the Nodes are not listed again");
    let beacons = pair.beacons();
    assert!(!beacons.is_empty());
    for beacon in beacons {
        let leader = &beacon["metadata"]["annotations"]["infra-controller-manager/leader"];
        assert!(leader.as_str().unwrap().ends_with("/1"), "the first transition: {beacon}");
        assert!(beacon["metadata"]["uid"].is_string() && beacon["spec"].is_null(), "{beacon}");
    }
}

/// rule:list-before-allocate
#[tokio::test(flavor = "multi_thread")]
async fn a_warm_standby_serves_nodes_without_a_list() {
    a_warm_standby_lists_no_nodes(Allocator::Range).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_standby_serves_nodes_of_cluster_cidrs_and_of_a_cloud() {
    a_warm_standby_lists_no_nodes(Allocator::MultiCidr).await;
    a_warm_standby_lists_no_nodes(Allocator::Cloud).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bookmark_proves_the_cache_without_a_write() {
    let (pair, [_, pages]) = warm_start(Allocator::Range, "--warm-proof=bookmark").await;
    assert!(pair.beacons().is_empty());
    // The newest version is read by a list of one Node.
    assert_eq!(pair.standby.node_pages(), pages, "the Nodes are not listed again");
}

/// An API server that etcd does not reach shows nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_does_not_show_the_beacon_makes_a_cold_start() {
    let pair = Pair::start(Allocator::Range, "--warm-proof=beacon").await;
    let lists = pair.standby.node_lists();
    pair.standby.proxy.watches("/api/v1/nodes").stall();
    pair.fail_over().await;
    pair.until_served().await;
    pair.assert_result("cold_no_proof").await;
    assert!(pair.standby.node_lists() > lists, "the Nodes are listed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_not_opened_at_the_first_try_makes_a_cold_start() {
    let pair = Pair::start(Allocator::Range, "--warm-proof=beacon").await;
    // A watch that ends before its first event calls for a list anyway.
    let version = ("informer_store_resource_version", [("resource", "nodes")]);
    let listed = pair.standby.manager.until_metric(version.0, &version.1, |_| true).await;
    pair.standby.manager.until_metric(version.0, &version.1, |now| now > listed).await;
    let refused = pair.standby.proxy.on(Match::node_watches()).then(Fault::status(503));
    let unlisted = pair.standby.proxy.on(Match::node_lists()).then(Fault::status(503));
    pair.standby.proxy.watches("/api/v1/nodes").cut();
    refused.hit(1).await;
    pair.fail_over().await;
    pair.standby.manager.line("Not using the warm cache").await;
    refused.remove();
    unlisted.remove();
    pair.until_served().await;
    pair.assert_result("cold_broken").await;
    assert!(pair.beacons().is_empty());
}
