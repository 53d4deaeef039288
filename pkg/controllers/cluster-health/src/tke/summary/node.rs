//! Nodes of a member cluster, and what they add up to.

use std::collections::BTreeMap;

use quantity::Resources;
use serde::Deserialize;

use super::listing::Collect;
use crate::api::tke::{MachineInfo, NodeCounts};

/// What all Nodes have, and the Nodes by themselves.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NodeTotals {
    pub(crate) capacity: Resources,
    pub(crate) allocatable: Resources,
    pub(crate) counts: NodeCounts,
    pub(crate) nodes: Vec<MemberNode>,
}

/// What Machines need to know of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberNode {
    pub(crate) name: Box<str>,
    pub(crate) internal_ips: Vec<Box<str>>,
    /// Of the label `platform.tkestack.io/machine-ip`.
    pub(crate) machine_ip: Option<Box<str>>,
    pub(crate) ready: bool,
    pub(crate) info: MachineInfo,
}

const MACHINE_IP: &str = "platform.tkestack.io/machine-ip";

/// The fields of a Node that are needed.
#[derive(Deserialize)]
pub(crate) struct Node {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: Box<str>,
    #[serde(default)]
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    capacity: Option<Resources>,
    allocatable: Option<Resources>,
    conditions: Option<Vec<Condition>>,
    addresses: Option<Vec<Address>>,
    node_info: Option<MachineInfo>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: Box<str>,
    address: Box<str>,
}

impl Status {
    /// Only an explicit word counts: a Node whose kubelet never reported is not ready.
    fn is_ready(&self) -> bool {
        let mut conditions = self.conditions.iter().flatten();
        conditions.any(|condition| &*condition.kind == "Ready" && &*condition.status == "True")
    }
}

impl Collect for NodeTotals {
    type Item = Node;

    fn add(&mut self, node: Node) {
        let Node { metadata, spec, status } = node;
        let ready = status.is_ready();
        self.counts.total += 1;
        self.counts.ready += i64::from(ready);
        self.counts.schedulable += i64::from(ready && !spec.unschedulable);
        for (sum, own) in
            [(&mut self.capacity, &status.capacity), (&mut self.allocatable, &status.allocatable)]
        {
            if let Some(own) = own {
                *sum += own;
            }
        }
        let mut labels = metadata.labels.unwrap_or_default();
        let internal = |address: &Address| &*address.kind == "InternalIP";
        let addresses = status.addresses.into_iter().flatten().filter(internal);
        self.nodes.push(MemberNode {
            name: metadata.name,
            internal_ips: addresses.map(|address| address.address).collect(),
            machine_ip: labels.remove(MACHINE_IP),
            ready,
            info: status.node_info.unwrap_or_default(),
        });
    }
}
