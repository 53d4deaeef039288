//! Pods of a member cluster, and what they add up to.

use quantity::{PodRequests, Resources};
use serde::Deserialize;

use super::published;
use crate::paging::{Abort, Collect};

/// What all Pods request that have not ended.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PodTotals {
    /// Of Pods on Nodes.
    pub(crate) allocated: Resources,
    /// Of Pods that have no Node yet.
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
        published::add(sum, &pod.spec.total());
        Ok(())
    }
}
