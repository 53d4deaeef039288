//! The kind ClusterCIDR, as objects have it.

use cidr::IpNet;
use events::ObjectRef;
use k8s_openapi::api::core::v1::NodeSelector;
use kube_api::{Condition, Resource};
use objects::Schema;
use serde::{Deserialize, Serialize};

/// ClusterCIDRs.
pub(crate) const CLUSTER_CIDRS: Resource =
    Resource::cluster("networking.x-k8s.io", "v1", "ClusterCIDR", "clustercidrs");

/// A ClusterCIDR, for events about it.
pub(crate) fn object_ref(name: &str, uid: &str) -> ObjectRef {
    ObjectRef::new(&CLUSTER_CIDRS.api_version(), &CLUSTER_CIDRS.kind, "", name, uid)
}

/// Holds a ClusterCIDR while Nodes have addresses of it.
pub(crate) const FINALIZER: &str = "networking.x-k8s.io/cluster-cidr-finalizer";

/// Annotation of a ClusterCIDR; with the value `true` it gives out nothing more, until the annotation
/// is removed (`rule:draining-pool-gives-nothing`).
pub(crate) const DRAIN: &str = "infra-controller-manager/drain";

/// The kind of [`CLUSTER_CIDRS`].
#[derive(Debug)]
pub(crate) enum ClusterCidr {}

impl Schema for ClusterCidr {
    type Body = ClusterCidrBody;
    type Status = ClusterCidrStatus;
}

/// The fields of a ClusterCIDR except metadata and status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClusterCidrBody {
    /// The desired state.
    pub(crate) spec: ClusterCidrSpec,
}

/// Ranges, the size of their blocks, and the Nodes that get one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClusterCidrSpec {
    /// Address bits inside a block, of a family without a number of its own.
    pub(crate) per_node_host_bits: i64,
    /// Address bits inside a block of IPv4.
    #[serde(rename = "perNodeHostBitsIPv4", skip_serializing_if = "Option::is_none")]
    pub(crate) per_node_host_bits_ipv4: Option<i64>,
    /// Address bits inside a block of IPv6.
    #[serde(rename = "perNodeHostBitsIPv6", skip_serializing_if = "Option::is_none")]
    pub(crate) per_node_host_bits_ipv6: Option<i64>,
    /// The IPv4 range; there is at least one range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ipv4: Option<String>,
    /// The IPv6 range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ipv6: Option<String>,
    /// `None` for all Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_selector: Option<NodeSelector>,
}

impl ClusterCidrSpec {
    /// The ranges that can be read, whatever is wrong with the rest.
    pub(crate) fn ranges(&self) -> Vec<IpNet> {
        let texts = [&self.ipv4, &self.ipv6].into_iter().flatten();
        texts.filter_map(|text| cidr::parse(text).ok()).collect()
    }
}

/// `status` of a ClusterCIDR.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterCidrStatus {
    /// Facts about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<Condition>,
    /// How full its ranges are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) families: Vec<RangeStatus>,
}

/// How full a range is. Numbers are cut at what an int64 holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RangeStatus {
    /// The range.
    pub(super) cidr: String,
    /// How many blocks it has.
    #[serde(default)]
    pub(super) total: i64,
    /// How many of them are used.
    #[serde(default)]
    pub(super) used: i64,
}
