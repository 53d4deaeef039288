//! Group `platform.tkestack.io/v1`: [`Cluster`], [`Machine`], and the [`ClusterCredential`] of a Cluster.

use std::fmt;

use jiff::Timestamp;
use kube_api::Resource;
use kube_api::quantity::Resources;
use objects::Schema;
use serde::{Deserialize, Serialize};

use crate::api::{Condition, WithSpec, time};

mod credential;

pub(crate) use credential::{ClusterCredential, CredentialError, SecretRef};
pub(crate) use credential::{CredentialMetadata, CredentialPage};

const GROUP: &str = "platform.tkestack.io";

pub(crate) const CLUSTERS: Resource = Resource::cluster(GROUP, "v1", "Cluster", "clusters");
pub(crate) const CLUSTER_CREDENTIALS: Resource =
    Resource::cluster(GROUP, "v1", "ClusterCredential", "clustercredentials");
pub(crate) const MACHINES: Resource = Resource::cluster(GROUP, "v1", "Machine", "machines");

#[cfg(test)]
mod tests;

/// The kind `Cluster`. Its spec holds passwords of machines, so only what is used is kept.
#[derive(Debug)]
pub(crate) enum Cluster {}

impl Schema for Cluster {
    type Body = WithSpec<ClusterSpec>;
    type Status = ClusterStatus;
    const KEPT_OF_SPEC: Option<&'static [&'static str]> =
        Some(&["tenantID", "type", "clusterCredentialRef", "addresses"]);
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterSpec {
    #[serde(rename = "tenantID")]
    pub tenant_id: String,
    /// The provider of the cluster: `Imported`, `Baremetal`, or another one.
    #[serde(rename = "type")]
    pub kind: String,
    pub cluster_credential_ref: Option<CredentialRef>,
    /// Go before `status.addresses`, which the API server drops when the object is made, and are
    /// published there.
    pub addresses: Vec<ClusterAddress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CredentialRef {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterStatus {
    /// True: the object is locked.
    pub locked: Option<bool>,
    /// Version of its API server, `major.minor.patch`.
    pub version: String,
    pub phase: Phase,
    /// The conditions in the order of their first appearance; the last one is the progress of upstream's installer.
    pub conditions: Vec<Condition>,
    pub reason: String,
    pub message: String,
    /// Where its API server can be reached.
    pub addresses: Vec<ClusterAddress>,
    /// The resources of the cluster and their use.
    pub resource: Option<ResourceSummary>,
    /// The record of its availability.
    pub availability: Option<String>,
}

/// The resources of a cluster and their use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ResourceSummary {
    /// Capacity of all Nodes.
    pub capacity: Resources,
    /// Resources of all Nodes that Pods can use.
    pub allocatable: Resources,
    /// Requested by Pods on Nodes.
    pub allocated: Resources,
    /// Requested by Pods that have no Node yet.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub allocating: Resources,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// Whole cores, rounded down Node by Node, as licences count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<i64>,
    /// How many Pods have not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<i64>,
    /// When all this was so.
    #[serde(with = "time", skip_serializing_if = "Option::is_none")]
    pub observed_time: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeCounts {
    pub total: i64,
    /// Nodes with the condition Ready=True.
    pub ready: i64,
    /// Ready, and not cordoned.
    pub schedulable: i64,
}

/// An address of the API server of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterAddress {
    #[serde(rename = "type")]
    pub kind: AddressType,
    /// IP address or name, without brackets.
    pub host: String,
    pub port: i32,
    /// Prefix of every path, such as that of a proxy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum AddressType {
    /// For users outside.
    Public,
    /// The address that the API servers advertise.
    Advertise,
    /// The address of one server itself.
    #[default]
    Real,
    /// For the management cluster.
    Internal,
    /// For maintenance.
    Support,
    /// A value that this program does not know.
    #[serde(untagged)]
    Other(Box<str>),
}

/// Where a Cluster or a Machine is in its life. An absent one means `Initializing`: a status is not
/// stored when an object is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// The Cluster is being set up.
    #[default]
    #[serde(alias = "")]
    Initializing,
    /// The Cluster waits for other actors.
    Waiting,
    /// Healthy.
    Running,
    /// The Cluster or Machine is not healthy.
    Failed,
    /// Shut off on purpose.
    Confined,
    Idling,
    /// Between two versions.
    Upgrading,
    /// Being removed.
    Terminating,
    /// Machines are being added.
    Upscaling,
    /// Machines are being taken away.
    Downscaling,
    /// Being mended.
    Recovering,
    /// A value that this program does not know.
    #[serde(untagged)]
    Other(Box<str>),
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(word) => f.write_str(word),
            // Its name is what is written.
            known => fmt::Debug::fmt(known, f),
        }
    }
}

/// The kind `Machine`. Its spec holds passwords, so only what is used is kept.
#[derive(Debug)]
pub(crate) enum Machine {}

impl Schema for Machine {
    type Body = WithSpec<MachineSpec>;
    type Status = MachineStatus;
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&["clusterName", "ip"]);
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MachineSpec {
    /// Name of the Cluster it belongs to.
    pub cluster_name: String,
    /// The address of the Machine, by which its Node is found.
    pub ip: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MachineStatus {
    /// True: the object is locked.
    pub locked: Option<bool>,
    pub phase: Phase,
    /// The conditions in the order of their first appearance.
    pub conditions: Vec<Condition>,
    pub reason: String,
    pub message: String,
    pub machine_info: Option<MachineInfo>,
}

/// `nodeInfo` of a Node: NodeSystemInfo of the core API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MachineInfo {
    #[serde(rename = "machineID")]
    pub machine_id: String,
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    #[serde(rename = "bootID")]
    pub boot_id: String,
    pub kernel_version: String,
    pub os_image: String,
    pub container_runtime_version: String,
    pub kubelet_version: String,
    pub kube_proxy_version: String,
    pub operating_system: String,
    pub architecture: String,
}

impl MachineInfo {
    /// Longest text of a field that is kept: what it says is a member's.
    const TEXT_MAX: usize = 256;

    /// Cuts every field that is longer than any Node has it.
    pub(crate) fn cut(mut self) -> Self {
        for text in [
            &mut self.machine_id,
            &mut self.system_uuid,
            &mut self.boot_id,
            &mut self.kernel_version,
            &mut self.os_image,
            &mut self.container_runtime_version,
            &mut self.kubelet_version,
            &mut self.kube_proxy_version,
            &mut self.operating_system,
            &mut self.architecture,
        ] {
            if text.len() > Self::TEXT_MAX {
                *text = cut(text, Self::TEXT_MAX).to_owned();
            }
        }
        self
    }
}

/// Cuts `text` to at most `most` bytes, at the end of a character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}
