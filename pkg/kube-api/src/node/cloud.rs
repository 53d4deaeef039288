//! [`CloudNode`]: a Node with what says which VM it is and whether its network is ready, for who
//! takes pod CIDRs from a cloud.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Node, WireMeta, list_or_single};
use crate::kind::share;
use crate::metadata::shared_text;
use crate::protobuf::{Fields, Malformed, text};
use crate::{Cached, Decoding, FromProtobuf, Kind, StaticKind};

/// The type of the condition that says that the network of a Node is not ready.
const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";
/// The taint that goes with it.
const NETWORK_TAINT: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// One Node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "WireCloudNode")]
pub struct CloudNode {
    /// All but the following.
    pub node: Node,
    /// `spec.providerID`; empty when it is missing.
    pub provider_id: Arc<str>,
    /// The condition NetworkUnavailable is there, and False.
    pub network_is_ready: bool,
    /// The Node has the taint `node.kubernetes.io/network-unavailable:NoSchedule`.
    pub network_taint: bool,
}

impl AsRef<Node> for CloudNode {
    fn as_ref(&self) -> &Node {
        &self.node
    }
}

impl Cached for CloudNode {
    const DECODING: Decoding = Node::DECODING;
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(from_protobuf);

    fn key(&self) -> &Arc<str> {
        self.node.key()
    }

    fn uid(&self) -> &str {
        self.node.uid()
    }

    fn share_with(&mut self, older: &Self) {
        self.node.share_with(&older.node);
        share(&mut self.provider_id, &older.provider_id);
    }

    fn set_selected(&mut self, is_selected: bool) {
        self.node.set_selected(is_selected);
    }

    fn resource_version(&self) -> u64 {
        self.node.resource_version()
    }
}

impl StaticKind for CloudNode {
    const KIND: Kind = Node::KIND;
}

#[derive(Deserialize)]
struct WireCloudNode {
    metadata: WireMeta<IgnoredAny>,
    #[serde(default)]
    spec: WireCloudSpec,
    #[serde(default)]
    status: WireStatus,
}

#[derive(Default, Deserialize)]
struct WireCloudSpec {
    #[serde(default, rename = "podCIDR")]
    pod_cidr: Option<Box<str>>,
    #[serde(default, rename = "podCIDRs")]
    pod_cidrs: Option<Vec<Box<str>>>,
    #[serde(default, rename = "providerID")]
    provider_id: Option<ProviderId>,
    #[serde(default)]
    taints: Option<Vec<WireTaint>>,
}

#[derive(Deserialize)]
struct ProviderId(#[serde(deserialize_with = "shared_text")] Arc<str>);

#[derive(Deserialize)]
struct WireTaint {
    key: Box<str>,
    effect: Box<str>,
}

#[derive(Default, Deserialize)]
struct WireStatus {
    #[serde(default)]
    conditions: Option<Vec<WireCondition>>,
}

#[derive(Deserialize)]
struct WireCondition {
    r#type: Box<str>,
    status: Box<str>,
}

impl From<WireCloudNode> for CloudNode {
    fn from(wire: WireCloudNode) -> Self {
        let WireCloudNode { metadata, spec, status } = wire;
        let node = Node {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            deleting: metadata.deletion_timestamp,
            is_selected: true,
            pod_cidrs: list_or_single(&spec.pod_cidrs.unwrap_or_default(), spec.pod_cidr),
        };
        let mut conditions = status.conditions.iter().flatten();
        let mut taints = spec.taints.iter().flatten();
        Self {
            node,
            provider_id: spec.provider_id.map_or_else(Arc::default, |ProviderId(text)| text),
            network_is_ready: conditions.any(|it| says_ready(&it.r#type, &it.status)),
            network_taint: taints.any(|it| is_network_taint(&it.key, &it.effect)),
        }
    }
}

fn says_ready(kind: &str, status: &str) -> bool {
    kind == NETWORK_UNAVAILABLE && status == "False"
}

fn is_network_taint(key: &str, effect: &str) -> bool {
    (key, effect) == NETWORK_TAINT
}

/// Decodes a Node in protobuf, where spec is field 2 and status field 3.
fn from_protobuf(message: &[u8]) -> Result<CloudNode, Malformed> {
    let mut read = CloudNode {
        node: super::from_protobuf(message)?,
        provider_id: Arc::default(),
        network_is_ready: false,
        network_taint: false,
    };
    for field in Fields::of(message) {
        let field = field?;
        match field.number {
            2 => read_spec(field.bytes()?, &mut read)?,
            3 => read_status(field.bytes()?, &mut read)?,
            _ => {}
        }
    }
    Ok(read)
}

/// `NodeSpec`: providerID is field 3, taints are field 5; of a taint the key is 1, the effect 3.
fn read_spec(spec: &[u8], read: &mut CloudNode) -> Result<(), Malformed> {
    for field in Fields::of(spec) {
        let field = field?;
        match field.number {
            3 => read.provider_id = field.text()?.into(),
            5 => {
                let taint = field.bytes()?;
                read.network_taint |= is_network_taint(text(taint, 1)?, text(taint, 3)?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// `NodeStatus`: conditions are field 4; of a condition the type is 1, the status 2.
fn read_status(status: &[u8], read: &mut CloudNode) -> Result<(), Malformed> {
    for field in Fields::of(status) {
        let field = field?;
        if field.number == 4 {
            let condition = field.bytes()?;
            read.network_is_ready |= says_ready(text(condition, 1)?, text(condition, 2)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
