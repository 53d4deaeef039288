//! Group `multicluster.x-k8s.io`: the ClusterProfile of the Cluster Inventory API, as far as it is read.

use kube::config::Cluster;
use kube_api::Resource;
use objects::Schema;
use serde::{Deserialize, Serialize};

use crate::api::{Condition, WithSpec, time};

pub(crate) const GROUP: &str = "multicluster.x-k8s.io";
/// Name of the CRD.
pub(crate) const CRD: &str = "clusterprofiles.multicluster.x-k8s.io";

/// The versions, the preferred one first.
pub(crate) static CLUSTER_PROFILES: [Resource; 2] = [
    Resource::namespaced(GROUP, "v1alpha2", "ClusterProfile", "clusterprofiles"),
    Resource::namespaced(GROUP, "v1alpha1", "ClusterProfile", "clusterprofiles"),
];

#[derive(Debug)]
pub(crate) enum ClusterProfile {}

impl Schema for ClusterProfile {
    type Body = WithSpec<ClusterProfileSpec>;
    type Status = ClusterProfileStatus;
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterProfileSpec {
    pub cluster_manager: ClusterManager,
}

/// The program that owns the object. The API makes it immutable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterManager {
    pub name: String,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterProfileStatus {
    pub conditions: Vec<Condition>,
    pub version: ClusterVersion,
    pub properties: Vec<Property>,
    pub access_providers: Vec<AccessProvider>,
    /// The name of `accessProviders` in older releases; v1alpha2 does not have it.
    pub credential_providers: Vec<AccessProvider>,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterVersion {
    pub kubernetes: String,
}

/// A fact about the cluster.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Property {
    pub name: String,
    pub value: String,
    #[serde(with = "time", skip_serializing_if = "Option::is_none")]
    pub last_observed_time: Option<jiff::Timestamp>,
}

/// One way to reach the cluster. It cannot be printed: the URL of a proxy may hold a password.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AccessProvider {
    pub name: String,
    /// The cluster as kubeconfigs describe it.
    pub cluster: Cluster,
}

impl PartialEq for AccessProvider {
    fn eq(&self, other: &Self) -> bool {
        let text = |it: &Self| serde_json::to_string(it).ok();
        text(self) == text(other)
    }
}
