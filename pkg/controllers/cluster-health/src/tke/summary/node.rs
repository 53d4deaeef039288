//! Nodes of a member cluster, and what they add up to.

use quantity::Resources;
use serde::Deserialize;

use super::listing::Collect;
use crate::api::tke::NodeCounts;

/// What all Nodes have, and how many there are.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NodeTotals {
    pub(crate) capacity: Resources,
    pub(crate) allocatable: Resources,
    pub(crate) counts: NodeCounts,
}

/// The fields of a Node that are needed.
#[derive(Deserialize)]
pub(crate) struct Node {
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    capacity: Option<Resources>,
    allocatable: Option<Resources>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
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
        let Node { spec, status } = node;
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
    }
}
