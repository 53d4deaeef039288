//! The two lists of one cluster, and what they come to.

use jiff::Timestamp;

use super::node::NodeList;
use super::node::NodeTotals;
use super::pod::PodTotals;
use super::pod::round_published;
use super::roster::Roster;
use crate::api::tke::ResourceSummary;
use crate::paging::{Abort, Member, list};

/// Pods that have ended hold nothing.
const NOT_ENDED: (&str, &str) = ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed");

/// All that was read of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) nodes: NodeTotals,
    pub(crate) pods: PodTotals,
}

/// Reads Nodes in pages of `page_size`, and keeps those that `roster` wants.
pub(crate) async fn nodes(
    member: &mut dyn Member,
    page_size: usize,
    roster: &Roster,
) -> Result<NodeList, Abort> {
    let start = || NodeList { totals: NodeTotals::default(), roster: roster.clone() };
    list(member, "/api/v1/nodes", &[], page_size, start).await
}

/// Reads Pods that have not ended, in pages of `page_size`.
pub(crate) async fn pods(member: &mut dyn Member, page_size: usize) -> Result<PodTotals, Abort> {
    list(member, "/api/v1/pods", &[NOT_ENDED], page_size, PodTotals::default).await
}

impl Gathered {
    /// As it stands in the status of the cluster.
    pub(crate) fn summary(&self, observed: Timestamp) -> ResourceSummary {
        ResourceSummary {
            capacity: round_published(&self.nodes.capacity),
            allocatable: round_published(&self.nodes.allocatable),
            allocated: round_published(&self.pods.allocated),
            allocating: round_published(&self.pods.allocating),
            nodes: Some(self.nodes.counts),
            cores: Some(self.nodes.cores),
            pods: Some(self.pods.pods),
            observed_time: Some(observed),
        }
    }
}

#[cfg(test)]
mod tests;
