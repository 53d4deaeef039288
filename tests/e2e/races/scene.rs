//! The words that the tests are written in.

use std::collections::HashMap;

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Client};
use tests::control_plane::MANAGER_USER;
use tests::fault_proxy::{NodePatch, Recorded};
use tests::node_events::{node_event, node_events};
use tests::nodes::delete_node;
use tests::{Allocator, Cluster, FaultProxy, Match, Observer, Process, Wire, cluster, mk_node};
use tests::{assert_never_shared, assert_patches_end, assert_patches_never_share};

/// With these timings a PATCH is given up after 1 s, and no leader loses the lease when the machine
/// stands still for 4 s.
pub(crate) const SHORT_LEASE: &str = "--leader-elect-lease-duration=6s \
     --leader-elect-renew-deadline=5s --leader-elect-retry-period=500ms";

/// An exclusive cluster with a proxy in front of it, and the test's own eyes and hands, which
/// reach the API server directly.
pub(crate) struct Scene {
    pub(crate) proxy: FaultProxy,
    pub(crate) nodes: Observer,
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
}

impl Scene {
    /// A scene with one of the encodings, always the same for a test.
    pub(crate) async fn set() -> Self {
        Self::set_on(Wire::of_this_test()).await
    }

    pub(crate) async fn set_on(wire: Wire) -> Self {
        eprintln!("{wire:?}"); // shown when the test fails
        let cluster = cluster().await;
        let client = cluster.client().await;
        let nodes = Observer::start(&client).await;
        let proxy = FaultProxy::start_with(wire, &cluster, MANAGER_USER, &[]).await;
        Self { proxy, nodes, client, cluster }
    }

    /// A second proxy to the same cluster, which separates the requests of two processes.
    pub(crate) async fn another_proxy(&self) -> FaultProxy {
        FaultProxy::start_with(Wire::of_this_test(), &self.cluster, MANAGER_USER, &[]).await
    }

    /// The product without leader election, ready to work.
    pub(crate) async fn start(&self, args: &str) -> Process {
        let manager = launch(&self.proxy, &format!("--leader-elect=false {args}"));
        manager.line("Controller starting...").await;
        manager
    }

    /// The product with leader election, leading and ready to work.
    pub(crate) async fn start_leader(&self, args: &str) -> Process {
        let manager = launch(&self.proxy, args);
        manager.line("Controller starting...").await;
        manager
    }

    /// Creates a Node and waits for its CIDRs.
    pub(crate) async fn add(&self, name: &str) -> Vec<String> {
        mk_node(name).create(&self.client).await;
        self.assigned(name).await
    }

    /// Waits for a Node's CIDRs.
    pub(crate) async fn assigned(&self, name: &str) -> Vec<String> {
        let what = format!("{name} has a pod CIDR");
        let now = self.nodes.until(&what, |now| !now.cidrs(name).is_empty()).await;
        now.cidrs(name).to_vec()
    }

    /// Deletes a Node and waits until it is gone.
    pub(crate) async fn remove(&self, name: &str) {
        delete_node(&self.client, name).await;
        self.nodes.until(&format!("{name} is gone"), |now| !now.contains_key(name)).await;
    }

    /// Creates a Node and waits for the event that says that there is no block for it.
    pub(crate) async fn starves(&self, name: &str) {
        mk_node(name).create(&self.client).await;
        self.event(name, "CIDRNotAvailable").await;
        assert!(self.nodes.now().cidrs(name).is_empty(), "{name} starves and yet has a CIDR");
    }

    /// Waits for an event on a Node of one reason.
    pub(crate) async fn event(&self, node: &str, reason: &str) -> Event {
        node_event(&self.client, node, reason).await
    }

    /// The events on a Node of one reason.
    pub(crate) async fn events(&self, node: &str, reason: &str) -> Vec<Event> {
        node_events(&self.client, node, reason).await
    }

    /// The PATCHes of one Node so far.
    pub(crate) fn patches(&self, node: &str) -> Vec<NodePatch> {
        let mut patches = self.proxy.node_patches();
        patches.retain(|patch| patch.node == node);
        patches
    }

    /// The methods of all requests about one Node so far.
    pub(crate) fn methods(&self, node: &str) -> Vec<Method> {
        let about = Match::any().path(&format!("/api/v1/nodes/{node}"));
        self.proxy.requests_like(&about).into_iter().map(|seen| seen.request.method).collect()
    }

    /// The holder of the product's lease; empty without a holder.
    pub(crate) async fn holder(&self) -> String {
        let leases = Api::<Lease>::namespaced(self.client.clone(), "kube-system");
        let lease = leases.get("infra-controller-manager").await.unwrap();
        lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }

    /// Checks every resourceVersion and every PATCH that was seen: no two Nodes shared a block,
    /// none could have, and every Node was sent the same CIDRs each time.
    pub(crate) fn end(self) {
        self.end_with(&[], &[]);
    }

    /// Like [`Self::end`]. `foreign` are names of Nodes to which the test itself gave overlapping
    /// CIDRs; `others` are the proxies other than the scene's own.
    pub(crate) fn end_with(self, foreign: &[&str], others: &[&FaultProxy]) {
        let mut patches = Vec::new();
        for proxy in others.iter().copied().chain([&self.proxy]) {
            let one = proxy.node_patches();
            assert_retries_repeat(&one, foreign);
            patches.extend(one);
        }
        for list in self.proxy.requests_like(&Match::node_lists()) {
            // What is compared with the cache has no Nodes, only their metadata.
            let is_compared = list.request.query.contains("resourceVersionMatch=Exact");
            assert!(is_compared || list.request.wants_protobuf(), "{list:?}");
        }
        let history = self.nodes.history();
        assert_never_shared(&history, foreign);
        assert_patches_never_share(&patches, &history, foreign);
        assert_patches_end(&patches);
    }
}

/// The product behind this proxy, as kubeadm runs it; `args` are those of the case.
pub(crate) fn launch(proxy: &FaultProxy, args: &str) -> Process {
    Process::with_kubeconfig(proxy.kubeconfig())
        .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true", "--v=2"])
        .args(args.split_whitespace())
        .start()
}

/// All PATCHes of one uid that one process sends carry the same CIDRs
/// (`rule:retry-repeats-the-claim`).
fn assert_retries_repeat(patches: &[NodePatch], foreign: &[&str]) {
    let mut first: HashMap<&str, &NodePatch> = HashMap::new();
    for patch in patches.iter().filter(|patch| !foreign.contains(&&*patch.node)) {
        assert!(!patch.uid.is_empty(), "{patch:?} would hit whatever has that name");
        let before = first.entry(&patch.uid).or_insert(patch);
        assert_eq!(before.pod_cidrs, patch.pod_cidrs, "node {} was sent both", patch.node);
    }
}

/// PATCHes of this Node.
pub(crate) fn patch_of(node: &str) -> Match {
    Match::node_patches().path(&format!("/api/v1/nodes/{node}"))
}

/// Writes of the Lease that give it back.
pub(crate) fn lease_releases() -> Match {
    lease_writes().and(|request| request.json()["spec"]["holderIdentity"] == "")
}

/// Writes of the Lease that take or keep it.
pub(crate) fn lease_renewals() -> Match {
    lease_writes().and(|request| {
        let holder = &request.json()["spec"]["holderIdentity"];
        holder.as_str().is_some_and(|holder| !holder.is_empty())
    })
}

fn lease_writes() -> Match {
    Match::leases().and(|request| [Method::POST, Method::PUT].contains(&request.method))
}

/// Waits until the product has no Node left to settle.
pub(crate) async fn settled(manager: &Process) {
    manager.until_metric("node_ipam_pending_nodes", &[], |nodes| nodes == 0.0).await;
}

/// Waits until so many blocks of the pool are in use.
pub(crate) async fn until_used(manager: &Process, pool: &str, used: f64) {
    let label = [("clusterCIDR", pool)];
    let max = manager.metrics().await.value(&Allocator::Range.metric("max_cidrs"), &label);
    let max = max.unwrap_or_else(|| panic!("no metric for pool {pool}"));
    let wanted = |share: f64| (share * max - used).abs() < 0.001;
    manager.until_metric(&Allocator::Range.metric("usage_cidrs"), &label, wanted).await;
}

/// The first of these requests that the server has answered.
pub(crate) fn first_answered(proxy: &FaultProxy, wanted: &Match) -> Option<Recorded> {
    let answered = |seen: &Recorded| seen.upstream_status.is_some_and(|code| code < 300);
    proxy.requests_like(wanted).into_iter().find(answered)
}
