//! [`Machine`]: a worker that is made into a Node of a Cluster.

use objects::Schema;
use serde::{Deserialize, Serialize};

use super::Phase;
use crate::api::{Condition, WithSpec, tolerant};

/// The kind `Machine`. Its spec holds passwords, so only what is used is kept.
#[derive(Debug)]
pub enum Machine {}

impl Schema for Machine {
    type Body = WithSpec<MachineSpec>;
    type Status = MachineStatus;
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&["clusterName", "ip"]);
}

/// What is needed of the spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineSpec {
    /// Name of the Cluster it belongs to.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub cluster_name: String,
    /// Its address, by which its Node is found.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub ip: String,
}

/// What is used of the status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineStatus {
    /// True: it is not to be touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked: Option<bool>,
    /// Where it is in its life.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub phase: Phase,
    /// In the order of their first appearance.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub conditions: Vec<Condition>,
    /// Of the condition that fails, as one word.
    #[serde(
        deserialize_with = "tolerant::null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub reason: String,
    /// Of the condition that fails, for people.
    #[serde(
        deserialize_with = "tolerant::null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub message: String,
    /// Addresses of its Node.
    #[serde(deserialize_with = "tolerant::null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// What its Node says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_info: Option<MachineInfo>,
}

/// An address of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineAddress {
    /// `Hostname`, `InternalIP` and so on.
    #[serde(rename = "type", deserialize_with = "tolerant::null_is_default")]
    pub kind: String,
    /// The address.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub address: String,
}

/// `nodeInfo` of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "they are those of the core API's NodeSystemInfo")]
pub struct MachineInfo {
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

/// As many characters of `text` as fit into `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}
