//! The words that the tests are written in.

use std::path::{Path, PathBuf};

use gce_stub::GceStub;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::{Api, Client};
use tests::control_plane::MANAGER_USER;
use tests::node_events::{node_event, node_events};
use tests::nodes::NewNode;
use tests::temp_dir::TempDir;
use tests::{
    Cluster, FaultProxy, Observer, PATIENCE, Process, Wire, assert_never_shared,
    assert_patches_never_share, cluster, mk_node, poll,
};

pub(crate) const ZONE: &str = "europe-west1-b";

/// A cluster on a cloud without VMs.
pub(crate) struct Scene {
    pub(crate) stub: GceStub,
    pub(crate) nodes: Observer,
    pub(crate) client: Client,
    pub(crate) proxy: FaultProxy,
    pub(crate) cluster: Cluster,
    config: PathBuf,
    _dir: TempDir,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        let (stub, dir) = (GceStub::start().await, TempDir::new("cloud").unwrap());
        stub.pages_of(500);
        let config = dir.join("cloud.conf");
        std::fs::write(&config, stub.config()).unwrap();
        let cluster = cluster().await;
        let client = cluster.client().await;
        let nodes = Observer::start(&client).await;
        let wire = Wire::of_this_test();
        let proxy = FaultProxy::start_with(wire, &cluster, MANAGER_USER, &[]).await;
        Self { stub, nodes, client, proxy, cluster, config, _dir: dir }
    }

    /// The product without leader election, at work.
    pub(crate) async fn start(&self, kind: &str, args: &str) -> Process {
        let args = format!("--leader-elect=false {args}");
        let manager = self.launch(self.proxy.kubeconfig(), kind, &args);
        manager.line("Controller starting...").await;
        manager
    }

    /// The product as kubeadm runs it.
    pub(crate) fn launch(&self, kubeconfig: &Path, kind: &str, args: &str) -> Process {
        Process::with_kubeconfig(kubeconfig)
            .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true"])
            .args(["--cloud-provider=gce", "--configure-cloud-routes=false", "--v=2"])
            .args([format!("--cidr-allocator-type={kind}")])
            .args([format!("--cloud-config={}", self.config.display())])
            .args(args.split_whitespace())
            .env("GCE_METADATA_HOST", &self.stub.host)
            .start()
    }

    /// Waits for a Node's CIDRs.
    pub(crate) async fn assigned(&self, name: &str) -> Vec<String> {
        let what = format!("{name} has a pod CIDR");
        let now = self.nodes.until(&what, |now| !now.cidrs(name).is_empty()).await;
        now.cidrs(name).to_vec()
    }

    /// The status of the condition NetworkUnavailable of a Node; empty when it is missing.
    pub(crate) async fn network(&self, name: &str) -> String {
        let node = Api::<Node>::all(self.client.clone()).get(name).await.unwrap();
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let condition = conditions.into_iter().find(|it| it.type_ == "NetworkUnavailable");
        condition.map(|condition| condition.status).unwrap_or_default()
    }

    /// Waits until a Node is said to be ready for pods.
    pub(crate) async fn ready(&self, name: &str) {
        let what = format!("the network of {name} is ready");
        poll(&what, async || (self.network(name).await == "False").then_some(())).await;
    }

    /// Waits for an event on a Node of one reason.
    pub(crate) async fn event(&self, node: &str, reason: &str) -> Event {
        node_event(&self.client, node, reason).await
    }

    /// The events on a Node of one reason.
    pub(crate) async fn events(&self, node: &str, reason: &str) -> Vec<Event> {
        node_events(&self.client, node, reason).await
    }

    /// Checks every resourceVersion and every PATCH that was seen, and that the product stops as it
    /// should without having lacked a right.
    pub(crate) async fn end(self, manager: &Process) {
        manager.terminate();
        assert!(manager.exit(PATIENCE).await.success());
        self.check(manager, &[]);
    }

    /// Checks the requests of a product that has ended; `others` are the proxies other than the scene's own.
    pub(crate) fn check(&self, manager: &Process, others: &[&FaultProxy]) {
        let proxies = others.iter().copied().chain([&self.proxy]);
        let patches = proxies.flat_map(FaultProxy::node_patches);
        let patches: Vec<_> = patches.filter(|patch| !patch.pod_cidrs.is_empty()).collect();
        let history = self.nodes.history();
        assert_never_shared(&history, &[]);
        assert_patches_never_share(&patches, &history, &[]);
        let at_once = self.stub.most_at_once();
        assert!(at_once <= 32, "{at_once} calls of the cloud at once");
        for line in manager.lines() {
            assert!(
                !line.contains("Missing permission") && !line.contains("hidden-token"),
                "{line}"
            );
        }
    }
}

/// The VM of this name, and a Node on it.
pub(crate) fn mk_vm_node(stub: &GceStub, zone: &str, name: &str, aliases: &[&str]) -> NewNode {
    stub.add_vm(zone, name, aliases);
    mk_node(name).provider_id(&GceStub::provider_id(zone, name))
}

/// The alias of the n-th VM.
pub(crate) fn alias(index: usize) -> String {
    format!("10.{}.{}.0/24", index / 200, index % 200)
}
