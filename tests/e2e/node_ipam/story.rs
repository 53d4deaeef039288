//! The words that the tests are written in.

use k8s_openapi::api::core::v1::Event;
use kube::Client;
use tests::node_events::node_event;
use tests::nodes::delete_node;
use tests::{Cluster, Observer, PATIENCE, Process, assert_never_shared, cluster, mk_node};

/// An exclusive cluster with the product running in it as kubeadm runs it: as
/// `system:kube-controller-manager`, writing as a service account.
pub(crate) struct Story {
    pub(crate) manager: Process,
    pub(crate) nodes: Observer,
    pub(crate) client: Client,
    /// Nodes that the test itself gave overlapping CIDRs.
    foreign: Vec<String>,
    cluster: Cluster,
}

impl Story {
    /// The product runs on an empty cluster.
    pub(crate) async fn begin(args: &str) -> Self {
        Self::with_nodes(&[], args).await
    }

    /// Starts the product after these Nodes, with their CIDRs, were created.
    pub(crate) async fn with_nodes(existing: &[(&str, &str)], args: &str) -> Self {
        let cluster = cluster().await;
        let client = cluster.client().await;
        let nodes = Observer::start(&client).await;
        for (name, cidr) in existing {
            mk_node(*name).cidr(cidr).create(&client).await;
        }
        let manager = start(&cluster, args);
        manager.line("Controller starting...").await;
        let foreign = existing.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { manager, nodes, client, foreign, cluster }
    }

    /// Stops the product and starts it with other flags.
    pub(crate) async fn restart(&mut self, args: &str) {
        self.manager.terminate();
        assert!(self.manager.exit(PATIENCE).await.success());
        self.manager = start(&self.cluster, args);
        self.manager.line("Controller starting...").await;
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

    /// Creates a Node with CIDRs of another writer.
    pub(crate) async fn add_foreign(&mut self, name: &str, cidrs: &[&str]) {
        let mut node = mk_node(name);
        for cidr in cidrs {
            node = node.cidr(cidr);
        }
        node.create(&self.client).await;
        self.nodes.until(&format!("{name} is there"), |now| now.contains_key(name)).await;
        self.foreign.push(name.to_owned());
    }

    /// Creates a Node and waits for the event that says that there is no block for it.
    pub(crate) async fn starves(&self, name: &str) -> String {
        mk_node(name).create(&self.client).await;
        let message = self.event(name, "CIDRNotAvailable").await.message.unwrap_or_default();
        assert!(self.nodes.now().cidrs(name).is_empty(), "{name} starves and yet has a CIDR");
        message
    }

    /// Waits for an event on a Node of one reason.
    pub(crate) async fn event(&self, node: &str, reason: &str) -> Event {
        node_event(&self.client, node, reason).await
    }

    /// Deletes a Node and waits until it is gone.
    pub(crate) async fn remove(&self, name: &str) {
        delete_node(&self.client, name).await;
        self.nodes.until(&format!("{name} is gone"), |now| !now.contains_key(name)).await;
    }

    /// Waits until so many blocks of the pool are in use.
    pub(crate) async fn until_used(&self, pool: &str, used: f64) {
        let label = [("clusterCIDR", pool)];
        let max = self.manager.metric("node_ipam_controller_cirdset_max_cidrs", &label).await;
        let max = max.unwrap_or_else(|| panic!("no metric for pool {pool}"));
        let wanted = |share: f64| (share * max - used).abs() < 0.001;
        self.manager.until_metric("node_ipam_controller_cidrset_usage_cidrs", &label, wanted).await;
    }

    /// Checks every resourceVersion that was seen, and that the product is still up.
    pub(crate) fn end(self) {
        let foreign: Vec<&str> = self.foreign.iter().map(String::as_str).collect();
        assert_never_shared(&self.nodes.history(), &foreign);
        assert!(self.manager.is_running(), "the product ended");
    }
}

/// Starts the product; `args` are those of the case.
pub(crate) fn start(cluster: &Cluster, args: &str) -> Process {
    Process::with_kubeconfig(&cluster.manager_kubeconfig())
        .args([
            "--allocate-node-cidrs=true",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--v=2",
            // The tests write pod CIDRs, too.
            "--on-second-allocator=warn",
        ])
        .args(args.split_whitespace())
        .start()
}
