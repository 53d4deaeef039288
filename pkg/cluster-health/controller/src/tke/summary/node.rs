//! Nodes of a member cluster, and what they add up to.

use std::collections::HashMap;

use kube_api::quantity::Resources;
use serde::Deserialize;

use super::pod::add_published;
use super::roster::Roster;
use crate::api::tke::{MachineInfo, NodeCounts};
use crate::paging::{Abort, Collect};

/// What all Nodes have, and how many there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeTotals {
    pub(crate) capacity: Resources,
    pub(crate) allocatable: Resources,
    pub(crate) counts: NodeCounts,
    /// Rounded down Node by Node.
    pub(crate) cores: i64,
}

/// The fields of a Node that are needed.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Node {
    pub(super) metadata: Metadata,
    spec: Spec,
    pub(super) status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: Box<str>,
    pub(super) labels: Option<HashMap<Box<str>, Box<str>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    capacity: Option<Resources>,
    allocatable: Option<Resources>,
    conditions: Option<Vec<Condition>>,
    pub(super) addresses: Option<Vec<Address>>,
    pub(super) node_info: Option<MachineInfo>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    #[serde(default)]
    reason: Option<Box<str>>,
}

#[derive(Deserialize)]
pub(super) struct Address {
    #[serde(rename = "type")]
    pub(super) kind: Box<str>,
    pub(super) address: Box<str>,
}

impl Status {
    fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().flatten().find(|condition| &*condition.kind == "Ready")
    }

    /// Only an explicit word counts: a Node whose kubelet never reported is not ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready().is_some_and(|condition| &*condition.status == "True")
    }

    /// Why it is not ready, as one word of its kubelet or of the node lifecycle controller.
    pub(super) fn reason(&self) -> &str {
        self.ready().and_then(|condition| condition.reason.as_deref()).unwrap_or_default()
    }
}

impl NodeTotals {
    pub(super) fn count(&mut self, node: &Node) {
        let Node { spec, status, .. } = node;
        let ready = status.is_ready();
        self.counts.total += 1;
        self.counts.ready += i64::from(ready);
        self.counts.schedulable += i64::from(ready && !spec.unschedulable);
        let cores = status.capacity.as_ref().map_or(0, |own| own.get("cpu").as_milli() / 1000);
        self.cores = self.cores.saturating_add(i64::try_from(cores.max(0)).unwrap_or(i64::MAX));
        for (sum, own) in
            [(&mut self.capacity, &status.capacity), (&mut self.allocatable, &status.allocatable)]
        {
            if let Some(own) = own {
                add_published(sum, own);
            }
        }
    }
}

/// What one list of Nodes says: what they add up to, and which machine each is on.
#[derive(Debug)]
pub(crate) struct NodeList {
    pub(crate) totals: NodeTotals,
    pub(crate) roster: Roster,
}

impl Collect for NodeList {
    type Item = Node;

    fn add(&mut self, node: Node) -> Result<(), Abort> {
        self.totals.count(&node);
        self.roster.add(node);
        Ok(())
    }
}
