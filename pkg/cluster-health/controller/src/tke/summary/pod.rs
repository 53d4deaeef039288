//! [`PodTotals`]: what the Pods of a member cluster add up to. Only the resources that are published
//! are added up: the names of others are the member's (`rule:lists-of-members-are-bounded`). Pure.

use kube_api::quantity::{PodRequests, Quantity, Resources};
use serde::Deserialize;

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
        add_published(sum, &pod.spec.total());
        Ok(())
    }
}

const NAMES: [&str; 2] = ["cpu", "memory"];

/// Adds what `own` has of them to `sum`.
pub(super) fn add_published(sum: &mut Resources, own: &Resources) {
    for name in NAMES {
        sum.set(name, sum.get(name) + own.get(name));
    }
}

/// Rounded up, once: processors to thousandths, everything else to whole numbers.
pub(super) fn round_published(sums: &Resources) -> Resources {
    let rounded = |name: &'static str| -> (&'static str, Quantity) {
        let sum = sums.get(name);
        (name, if name == "cpu" { sum.rounded_to_milli() } else { sum.rounded_to_whole() })
    };
    NAMES.into_iter().map(rounded).collect()
}

#[cfg(test)]
mod tests {
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
        assert_eq!((sum.get("cpu"), sum.iter().count()), (Quantity::whole(100), NAMES.len()));
    }
}
