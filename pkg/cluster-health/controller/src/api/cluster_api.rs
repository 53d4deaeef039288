//! Group `cluster.x-k8s.io`: the Cluster of Cluster API, as far as it is read.

use kube_api::Resource;
use objects::{Object, Schema};
use serde::{Deserialize, Serialize};

use crate::api::{Condition, WithSpec};

pub(crate) const GROUP: &str = "cluster.x-k8s.io";
/// Name of the CRD.
pub(crate) const CRD: &str = "clusters.cluster.x-k8s.io";
/// The versions whose conditions can be shared.
pub(crate) static CLUSTERS: [Resource; 1] =
    [Resource::namespaced(GROUP, "v1beta2", "Cluster", "clusters")];
/// Annotation that pauses a Cluster, with any value.
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Annotation with the name of another Secret of the same namespace than the one that the control plane provider makes.
const PROBE_SECRET: &str = "infra-controller-manager/probe-secret";

#[derive(Debug)]
pub(crate) enum Cluster {}

impl Schema for Cluster {
    type Body = WithSpec<ClusterSpec>;
    type Status = ClusterStatus;
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterSpec {
    pub paused: bool,
    pub control_plane_endpoint: Endpoint,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Endpoint {
    pub host: String,
    pub port: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterStatus {
    pub conditions: Vec<Condition>,
    pub initialization: Initialization,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Initialization {
    pub control_plane_initialized: bool,
}

/// Why Cluster API's controllers leave the Cluster alone for now; `None` when they do not.
pub(crate) fn pause(cluster: &Object<Cluster>) -> Option<&'static str> {
    if cluster.body.spec.paused {
        return Some("the Cluster is paused by spec.paused");
    }
    let is_annotated = cluster.metadata.annotations.contains_key(PAUSED);
    is_annotated.then_some("the Cluster is paused by the annotation cluster.x-k8s.io/paused")
}

/// Name of the Secret with the kubeconfig.
pub(crate) fn secret_name(cluster: &Object<Cluster>) -> String {
    let named = cluster.metadata.annotations.get(PROBE_SECRET);
    named.cloned().unwrap_or_else(|| format!("{}-kubeconfig", cluster.metadata.name()))
}
