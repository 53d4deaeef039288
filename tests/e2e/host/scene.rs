//! The words that the tests are written in.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Client};
use tests::control_plane::MANAGER_USER;
use tests::fault_proxy::Recorded;
use tests::node_events::node_events;
use tests::{Cluster, FaultProxy, Match, Observer, Process, Stopwatch, cluster, mk_node, poll};

/// The shortest timings with which no leader loses the lease when the machine stands still for 4 s.
pub(crate) const SHORT_LEASE: &str = "--leader-elect-lease-duration=6s \
     --leader-elect-renew-deadline=5s --leader-elect-retry-period=500ms";
/// The lease under its default name.
pub(crate) const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/infra-controller-manager";
/// An end that needs no waiting; this is for a busy machine.
pub(crate) const AT_ONCE: Duration = tests::PATIENCE;

/// An exclusive cluster, a proxy in front of it, and the test's own eyes and hands, which reach
/// the API server directly.
pub(crate) struct Scene {
    pub(crate) proxy: FaultProxy,
    pub(crate) nodes: Observer,
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        let cluster = cluster().await;
        let client = cluster.client().await;
        let nodes = Observer::start(&client).await;
        let proxy = FaultProxy::start(&cluster, MANAGER_USER, &[]).await;
        Self { proxy, nodes, client, cluster }
    }

    /// A second proxy to the same cluster, which separates the requests of two processes.
    pub(crate) async fn another_proxy(&self) -> FaultProxy {
        FaultProxy::start(&self.cluster, MANAGER_USER, &[]).await
    }

    /// The product behind the scene's proxy, ready to work.
    pub(crate) async fn start(&self, args: &str) -> Process {
        let manager = launch(&self.proxy, args);
        manager.line("Controller starting...").await;
        manager
    }

    /// Creates a Node and waits for its CIDRs; how long they took, without what a busy machine
    /// adds.
    pub(crate) async fn serves(&self, name: &str) -> Duration {
        let created = Stopwatch::start();
        mk_node(name).create(&self.client).await;
        let what = format!("{name} has a pod CIDR");
        self.nodes.until(&what, |now| !now.cidrs(name).is_empty()).await;
        created.elapsed()
    }

    /// Waits for an event on a Node that is as `wanted`.
    pub(crate) async fn event(
        &self,
        node: &str,
        reason: &str,
        wanted: impl Fn(&Event) -> bool,
    ) -> Event {
        let ask = async || node_events(&self.client, node, reason).await.into_iter().find(&wanted);
        poll(&format!("such an event {reason} on {node}"), ask).await
    }

    /// The product's lease.
    pub(crate) async fn lease(&self) -> Lease {
        let leases = Api::<Lease>::namespaced(self.client.clone(), "kube-system");
        leases.get("infra-controller-manager").await.unwrap()
    }

    /// The holder of the product's lease; empty without a holder or without the lease.
    pub(crate) async fn holder(&self) -> String {
        self.holder_of("infra-controller-manager").await
    }

    /// The holder of the lease of this name.
    pub(crate) async fn holder_of(&self, name: &str) -> String {
        let leases = Api::<Lease>::namespaced(self.client.clone(), "kube-system");
        let lease = leases.get_opt(name).await.unwrap();
        lease.as_ref().map(holder).unwrap_or_default()
    }
}

/// The holder of a lease; empty without a holder.
pub(crate) fn holder(lease: &Lease) -> String {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default()
}

/// Starts the product behind this proxy; `args` are those of the case.
pub(crate) fn launch(proxy: &FaultProxy, args: &str) -> Process {
    Process::with_kubeconfig(proxy.kubeconfig())
        .args(["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/12", "--v=2"])
        .args(args.split_whitespace())
        .start()
}

/// Requests that change something.
pub(crate) fn writes() -> Match {
    Match::any().and(|request| !request.method.is_safe())
}

/// Writes of the lease.
pub(crate) fn lease_writes() -> Match {
    Match::leases().and(|request| [Method::POST, Method::PUT].contains(&request.method))
}

/// The methods of these requests, each once.
pub(crate) fn methods(requests: &[Recorded]) -> BTreeSet<&str> {
    requests.iter().map(|seen| seen.request.method.as_str()).collect()
}

/// Polls until `/readyz` answers with this status; the body then.
pub(crate) async fn until_readyz(manager: &Process, status: u16) -> String {
    let ask = async || manager.get("/readyz").await.ok().filter(|(code, _)| *code == status);
    poll(&format!("/readyz answers {status}"), ask).await.1
}
