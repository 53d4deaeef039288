//! Makes and deletes Nodes, many at once.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Requests in flight while many nodes are made or deleted; more gains nothing on two cores.
const IN_FLIGHT: usize = 16;

/// A Node to be made.
#[derive(Debug, Clone)]
pub struct NewNode {
    name: String,
    object: Value,
}

/// A Node of this name and nothing else.
pub fn mk_node(name: impl Into<String>) -> NewNode {
    let name = name.into();
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {}, "finalizers": []},
        "spec": {},
    });
    NewNode { name, object }
}

impl NewNode {
    /// Adds a pod CIDR: the first is the primary one.
    #[must_use]
    pub fn cidr(mut self, cidr: &str) -> Self {
        let spec = &mut self.object["spec"];
        match spec["podCIDRs"].as_array_mut() {
            Some(cidrs) => cidrs.push(cidr.into()),
            None => *spec = json!({"podCIDR": cidr, "podCIDRs": [cidr]}),
        }
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.object["metadata"]["labels"][name] = value.into();
        self
    }

    /// Says which VM it is; given after the pod CIDRs.
    #[must_use]
    pub fn provider_id(mut self, id: &str) -> Self {
        self.object["spec"]["providerID"] = id.into();
        self
    }

    /// Adds a condition of this type.
    #[must_use]
    pub fn condition(mut self, kind: &str, status: &str) -> Self {
        self.object["status"] = json!({"conditions": [{"type": kind, "status": status}]});
        self
    }

    /// Adds a finalizer: deleting the node then only marks it.
    #[must_use]
    pub fn finalizer(mut self, name: &str) -> Self {
        if let Some(finalizers) = self.object["metadata"]["finalizers"].as_array_mut() {
            finalizers.push(name.into());
        }
        self
    }

    /// Fills the status with container images until the object has about this many bytes of
    /// JSON, as a kubelet's has: some 3.4 KiB at home, 6 KB and more in the wild.
    #[must_use]
    pub fn padded(mut self, bytes: usize) -> Self {
        let mut images = Vec::new();
        let mut size = self.object.to_string().len();
        while size < bytes {
            let name = format!("registry.example/project/image-{}@sha256:{:064x}", images.len(), 7);
            let image = json!({"names": [name], "sizeBytes": 123_456_789});
            size += image.to_string().len() + 1;
            images.push(image);
        }
        self.object["status"] = json!({"images": images});
        self
    }

    /// Makes it; the server's answer.
    pub async fn create(self, client: &Client) -> Node {
        let name = self.name.clone();
        let node = self.try_create(client).await;
        node.unwrap_or_else(|error| panic!("cannot create node {name}: {error}"))
    }

    /// Like [`Self::create`], for a Node that the server may refuse.
    pub async fn try_create(self, client: &Client) -> kube::Result<Node> {
        let node = serde_json::from_value(self.object).map_err(kube::Error::SerdeError)?;
        Api::all(client.clone()).create(&PostParams::default(), &node).await
    }
}

/// Makes all of them, in no particular order.
pub async fn create_nodes(client: &Client, nodes: impl IntoIterator<Item = NewNode>) -> Vec<Node> {
    futures::stream::iter(nodes)
        .map(|node| node.create(client))
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await
}

/// Deletes one by name.
pub async fn delete_node(client: &Client, name: &str) {
    let result = Api::<Node>::all(client.clone()).delete(name, &DeleteParams::default()).await;
    if let Err(error) = result {
        panic!("cannot delete node {name}: {error}");
    }
}

/// Deletes all of them, in no particular order. It is an error if one does not exist.
pub async fn delete_nodes(client: &Client, names: impl IntoIterator<Item = impl Into<String>>) {
    futures::stream::iter(names.into_iter().map(Into::into))
        .map(async |name: String| delete_node(client, &name).await)
        .buffer_unordered(IN_FLIGHT)
        .collect::<()>()
        .await;
}

/// Sets pod CIDRs as a foreign writer does: without asking anyone.
pub async fn set_cidrs(client: &Client, name: &str, cidrs: &[&str]) -> kube::Result<Node> {
    let patch = Patch::Strategic(json!({"spec": {"podCIDR": cidrs[0], "podCIDRs": cidrs}}));
    Api::all(client.clone()).patch(name, &PatchParams::default(), &patch).await
}

/// Removes all finalizers: a node marked for deletion goes.
pub async fn drop_finalizers(client: &Client, name: &str) -> kube::Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let nodes = Api::<Node>::all(client.clone());
    nodes.patch_metadata(name, &PatchParams::default(), &patch).await.map(drop)
}

/// Names of a row of nodes: `prefix-0`, `prefix-1`, ….
pub fn names(prefix: &str, count: usize) -> impl Iterator<Item = String> + use<> {
    let prefix = prefix.to_owned();
    (0..count).map(move |index| format!("{prefix}-{index}"))
}
