//! The two lists of one cluster, and what they come to.

use jiff::Timestamp;
use quantity::Resources;

use super::node::NodeTotals;
use super::node_list::NodeList;
use super::pod::PodTotals;
use crate::api::tke::ResourceSummary;
use crate::paging::{Abort, Member, list};

/// The resources that are published.
const PUBLISHED: [&str; 2] = ["cpu", "memory"];
/// Pods that have ended hold nothing.
const NOT_ENDED: (&str, &str) = ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed");

/// All that was read of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) nodes: NodeTotals,
    pub(crate) pods: PodTotals,
}

/// Reads Nodes in pages of `page_size`.
pub(crate) async fn nodes(member: &mut dyn Member, page_size: usize) -> Result<NodeList, Abort> {
    list(member, "/api/v1/nodes", &[("limit", &*page_size.to_string())]).await
}

/// Reads Pods that have not ended, in pages of `page_size`.
pub(crate) async fn pods(member: &mut dyn Member, page_size: usize) -> Result<PodTotals, Abort> {
    list(member, "/api/v1/pods", &[("limit", &*page_size.to_string()), NOT_ENDED]).await
}

impl Gathered {
    /// As it stands in the status of the cluster.
    pub(crate) fn summary(&self, observed: Timestamp) -> ResourceSummary {
        ResourceSummary {
            capacity: published(&self.nodes.capacity),
            allocatable: published(&self.nodes.allocatable),
            allocated: published(&self.pods.allocated),
            allocating: published(&self.pods.allocating),
            nodes: Some(self.nodes.counts),
            cores: Some(self.nodes.cores),
            pods: Some(self.pods.pods),
            observed_time: Some(observed),
        }
    }
}

/// Rounded up, once: processors to thousandths, everything else to whole numbers.
fn published(sums: &Resources) -> Resources {
    let rounded = |name: &'static str| {
        let sum = sums.get(name);
        (name, if name == "cpu" { sum.rounded_to_milli() } else { sum.rounded_to_whole() })
    };
    PUBLISHED.into_iter().map(rounded).collect()
}

#[cfg(test)]
mod tests;
