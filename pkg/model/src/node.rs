//! The Node of core/v1 as the controllers see it.

use std::sync::Arc;

use serde::Deserialize;

use crate::Cached;
use crate::read::{presence, resource_version, shared_text};

/// One Node, about 0.4 KB with its map entry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "WireNode")]
pub struct Node {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: u64,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `spec.podCIDRs`; `[spec.podCIDR]` when the list is missing or empty. The text is kept as
    /// it came: whether it is a CIDR is the reader's question.
    pub pod_cidrs: Box<[Box<str>]>,
}

impl Cached for Node {
    const KIND: &'static str = "Node";
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const RESOURCE: &'static str = "nodes";
    const PATH: &'static str = "/api/v1/nodes";

    fn key(&self) -> &Arc<str> {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> u64 {
        self.resource_version
    }
}

#[derive(Deserialize)]
struct WireNode {
    metadata: WireMeta,
    #[serde(default)]
    spec: WireSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMeta {
    #[serde(deserialize_with = "shared_text")]
    name: Arc<str>,
    #[serde(deserialize_with = "shared_text")]
    uid: Arc<str>,
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default, deserialize_with = "presence")]
    deletion_timestamp: bool,
}

#[derive(Default, Deserialize)]
struct WireSpec {
    #[serde(default, rename = "podCIDR")]
    pod_cidr: Option<Box<str>>,
    #[serde(default, rename = "podCIDRs")]
    pod_cidrs: Option<Box<[Box<str>]>>,
}

impl From<WireNode> for Node {
    fn from(wire: WireNode) -> Self {
        let WireNode { metadata, spec } = wire;
        let listed = spec.pod_cidrs.filter(|list| !list.is_empty());
        let single = spec.pod_cidr.filter(|text| !text.is_empty());
        Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            deleting: metadata.deletion_timestamp,
            pod_cidrs: listed.unwrap_or_else(|| single.into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests;
