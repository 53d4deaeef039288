//! The resources of a member cluster and their use: [`Gathered`], from the [`NodeTotals`] of its Nodes
//! and the [`PodTotals`] of its Pods, which are read page by page, apart from the probes. Only the
//! resources that are published are added up: the names of others are the member's
//! (`rule:lists-of-members-are-bounded`).

use jiff::Timestamp;
use kube_api::quantity::{PodRequests, Quantity, Resources};
use nodes::{PUBLISHED, add_published};
use serde::Deserialize;

use crate::api::tke::ResourceSummary;
use crate::paging::{Abort, Collect, Member, list};

mod nodes;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use nodes::Roster;
pub(crate) use nodes::{NodeList, NodeTotals};
#[cfg(test)]
pub(crate) use testing::{list_for, list_of};

/// The requests of all Pods that have not ended.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PodTotals {
    /// The requests of Pods on Nodes.
    pub(crate) allocated: Resources,
    /// The requests of Pods that have no Node yet.
    pub(crate) allocating: Resources,
    /// How many there are.
    pub(crate) pods: i64,
}

/// The fields of a Pod that are needed.
#[derive(Deserialize)]
pub(crate) struct Pod {
    #[serde(default)]
    spec: PodRequests,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<Box<str>>,
}

impl Collect for PodTotals {
    type Item = Pod;

    fn add(&mut self, pod: Pod) -> Result<(), Abort> {
        // The server leaves them out; one that knows no such selector would not.
        if matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            return Ok(());
        }
        self.pods += 1;
        let on_a_node = pod.spec.node_name.as_ref().is_some_and(|name| !name.is_empty());
        let sum = if on_a_node { &mut self.allocated } else { &mut self.allocating };
        add_published(sum, &pod.spec.total());
        Ok(())
    }
}

/// Rounded up, once: processors to thousandths, everything else to whole numbers.
fn round_published(sums: &Resources) -> Resources {
    let rounded = |name: &'static str| -> (&'static str, Quantity) {
        let sum = sums.get(name);
        (name, if name == "cpu" { sum.rounded_to_milli() } else { sum.rounded_to_whole() })
    };
    PUBLISHED.into_iter().map(rounded).collect()
}

/// Pods that have ended hold nothing.
const NOT_ENDED: (&str, &str) = ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed");

/// All that was read of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) nodes: NodeTotals,
    pub(crate) pods: PodTotals,
}

/// Reads Nodes in pages of `page_size`, and keeps those that `roster` wants.
pub(crate) async fn list_nodes(
    member: &mut dyn Member,
    page_size: usize,
    roster: &Roster,
) -> Result<NodeList, Abort> {
    let start = || NodeList { totals: NodeTotals::default(), roster: roster.clone() };
    list(member, "/api/v1/nodes", &[], page_size, start).await
}

/// Reads Pods that have not ended, in pages of `page_size`.
pub(crate) async fn list_pods(
    member: &mut dyn Member,
    page_size: usize,
) -> Result<PodTotals, Abort> {
    list(member, "/api/v1/pods", &[NOT_ENDED], page_size, PodTotals::default).await
}

impl Gathered {
    /// The summary for the status of the cluster.
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
mod pod_tests {
    use super::*;

    /// rule:lists-of-members-are-bounded
    #[test]
    fn resources_that_are_not_published_are_not_kept() {
        let mut sum = Resources::default();
        for number in 0..100 {
            let invented = format!("invented.example/{number}");
            let own = [("cpu", Quantity::whole(1)), (&*invented, Quantity::whole(1))];
            add_published(&mut sum, &own.into_iter().collect());
        }
        assert_eq!((sum.get("cpu"), sum.iter().count()), (Quantity::whole(100), PUBLISHED.len()));
    }
}
