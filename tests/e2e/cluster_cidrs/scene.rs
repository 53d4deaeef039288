//! The words that the tests are written in.

use std::path::Path;

use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tests::nodes::delete_node;
use tests::poll::poll;
use tests::pool::{Lent, Pool};
use tests::{Allocator, Observer, PATIENCE, Process, assert_never_shared, mk_node};

pub(crate) const MULTI: &str = Allocator::MultiCidr.flag();
/// The kind, by a name that no other group has.
pub(crate) const KIND: &str = "clustercidrs.networking.x-k8s.io";

/// A cluster with the CRDs and the rights for ClusterCIDRs, without Nodes and ClusterCIDRs.
pub(crate) async fn hub() -> Lent<Kubectl> {
    static HUBS: Pool<Kubectl> = Pool::new();
    let make = async || {
        let hub = Kubectl::without_crds().await;
        Allocator::MultiCidr.prepare(&hub.plane).await;
        hub
    };
    let clean = async |hub: &Kubectl| {
        hub.run("delete nodes,events --all");
        Allocator::MultiCidr.prepare(&hub.plane).await;
    };
    HUBS.lend(make, clean).await
}

/// A ClusterCIDR.
pub(crate) fn cluster_cidr(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// A spec for all Nodes; a range is of the family that it is written in.
pub(crate) fn everybody(ranges: &[&str], bits: u8) -> Value {
    let mut spec = json!({"perNodeHostBits": bits});
    for range in ranges {
        spec[if range.contains(':') { "ipv6" } else { "ipv4" }] = json!(range);
    }
    spec
}

/// A spec for Nodes with all of these labels.
pub(crate) fn labelled(ranges: &[&str], bits: u8, keys: &[&str]) -> Value {
    let exists = |key: &&str| json!({"key": key, "operator": "Exists"});
    let wanted: Vec<Value> = keys.iter().map(exists).collect();
    let mut spec = everybody(ranges, bits);
    spec["nodeSelector"] = json!({"nodeSelectorTerms": [{"matchExpressions": wanted}]});
    spec
}

/// A cluster in which the product allocates out of ClusterCIDRs.
pub(crate) struct Scene {
    pub(crate) manager: Process,
    pub(crate) nodes: Observer,
    pub(crate) client: kube::Client,
    pub(crate) hub: Lent<Kubectl>,
}

impl Scene {
    /// Starts the product after these ClusterCIDRs were created.
    pub(crate) async fn begin(objects: &[Value], args: &str) -> Self {
        Self::begin_on(hub().await, objects, args).await
    }

    /// Like [`Self::begin`], in a cluster of the test.
    pub(crate) async fn begin_on(hub: Lent<Kubectl>, objects: &[Value], args: &str) -> Self {
        let client = hub.plane.client().await;
        let nodes = Observer::start(&client).await;
        if !objects.is_empty() {
            hub.create_all(objects);
        }
        let manager = start(&hub.plane.manager_kubeconfig(), &format!("{MULTI} {args}"));
        manager.line("Controller starting...").await;
        Self { manager, nodes, client, hub }
    }

    /// Creates a Node and waits for its CIDRs.
    pub(crate) async fn add(&self, name: &str, labels: &[&str]) -> Vec<String> {
        create(&self.client, name, labels).await;
        self.assigned(name).await
    }

    /// Waits for a Node's CIDRs.
    pub(crate) async fn assigned(&self, name: &str) -> Vec<String> {
        let what = format!("{name} has a pod CIDR");
        let now = self.nodes.until(&what, |now| !now.cidrs(name).is_empty()).await;
        now.cidrs(name).to_vec()
    }

    /// Creates a Node and waits for the event that says that there is no block for it.
    pub(crate) async fn starves(&self, name: &str, labels: &[&str]) -> String {
        create(&self.client, name, labels).await;
        let event = self.event(name, "CIDRNotAvailable").await;
        assert!(self.nodes.now().cidrs(name).is_empty(), "{name} starves and yet has a CIDR");
        assert_eq!(event["source"]["component"], "multiCIDRRangeAllocator");
        event["message"].as_str().unwrap().to_owned()
    }

    /// Waits for an event on an object.
    pub(crate) async fn event(&self, name: &str, reason: &str) -> Value {
        poll(&format!("event {reason} on {name}"), async || self.events(name, reason).pop()).await
    }

    /// The events on an object of one reason.
    pub(crate) fn events(&self, name: &str, reason: &str) -> Vec<Value> {
        let fields = format!("involvedObject.name={name},reason={reason}");
        let events = self.hub.object(&format!("events --field-selector {fields}"));
        events["items"].as_array().unwrap().clone()
    }

    /// Deletes a Node and waits until it is gone.
    pub(crate) async fn remove(&self, name: &str) {
        delete_node(&self.client, name).await;
        self.nodes.until(&format!("{name} is gone"), |now| !now.contains_key(name)).await;
    }

    /// Waits until a ClusterCIDR is as wanted.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        until(&self.hub, name, what, wanted).await
    }

    /// Asks for the end of a ClusterCIDR.
    pub(crate) fn delete(&self, name: &str) {
        self.hub.run(&format!("delete {KIND} {name} --wait=false"));
    }

    /// Waits until a ClusterCIDR is gone.
    pub(crate) async fn until_gone(&self, name: &str) {
        poll(&format!("{name} is gone"), async || find(&self.hub, name).is_none().then_some(()))
            .await;
    }

    /// Checks every resourceVersion that was seen, and that the product stops as it should without
    /// having lacked a right.
    pub(crate) async fn end(self, foreign: &[&str]) {
        assert_never_shared(&self.nodes.history(), foreign);
        assert!(self.manager.is_running(), "the product ended");
        self.manager.terminate();
        assert!(self.manager.exit(PATIENCE).await.success());
        for line in self.manager.lines() {
            assert!(
                !line.contains("is forbidden: User") && !line.contains("Missing permission"),
                "{line}"
            );
        }
    }
}

/// Starts the product as kubeadm runs it.
pub(crate) fn start(kubeconfig: &Path, args: &str) -> Process {
    Process::with_kubeconfig(kubeconfig)
        .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true"])
        // The tests write pod CIDRs, too.
        .args(["--leader-elect=false", "--v=2", "--on-second-allocator=warn"])
        .args(args.split_whitespace())
        .start()
}

/// Creates a Node with these labels, whose values are empty.
pub(crate) async fn create(client: &kube::Client, name: &str, labels: &[&str]) {
    let node = labels.iter().fold(mk_node(name), |node, key| node.label(key, ""));
    node.create(client).await;
}

/// A ClusterCIDR, if it is there.
pub(crate) fn find(hub: &Kubectl, name: &str) -> Option<Value> {
    let all = hub.object(KIND);
    let mut all = all["items"].as_array().unwrap().iter();
    all.find(|object| object["metadata"]["name"] == name).cloned()
}

/// Waits until a ClusterCIDR is as wanted.
pub(crate) async fn until(
    hub: &Kubectl,
    name: &str,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    poll(&format!("{name} {what}"), async || find(hub, name).filter(|object| wanted(object))).await
}

/// The condition of this type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}

/// Whether it is in use.
pub(crate) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready")["status"] == "True"
}

/// Used blocks of each range.
pub(crate) fn used(object: &Value) -> Vec<u64> {
    let ranges = object["status"]["families"].as_array();
    ranges.into_iter().flatten().filter_map(|range| range["used"].as_u64()).collect()
}
