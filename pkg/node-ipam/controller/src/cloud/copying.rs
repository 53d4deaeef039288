//! The CloudAllocator: decides what to do for a Node by the ranges of its VM, and does it.

use std::sync::Arc;
use std::time::Duration;

use cidr::{Family, IpNet};
use gce::PodRanges;
use kube_api::CloudNode;
use workqueue::{Backoff, Jitter, Next, Reconcile, Retry};

use super::cloud_nodes::CloudNodes;
use super::provider::Cloud;
use crate::node_events::{MISMATCH, NOT_AVAILABLE};
use crate::options::Families;
use crate::reconciler::Ended;

/// The work to do for a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The VM has nothing for pods, or not yet: told, and tried again.
    NotAvailable,
    /// The VM has no range of a family: tried again.
    Lacking(Lack),
    /// Write these pod CIDRs to the Node, then mark its network ready.
    Assign(Vec<IpNet>),
    /// The Node has them: its network is ready.
    Settled,
    /// The Node has others. They cannot be changed, and only the operator knows which are right: an
    /// event, no write.
    Mismatch,
}

/// Decides; `has` are the pod CIDRs of the Node as they are written there.
pub(super) fn decide(has: &[String], vm: &PodRanges, families: &Families) -> Decision {
    if vm.first().is_none() {
        return Decision::NotAvailable;
    }
    if has.is_empty() {
        return match families.of(vm) {
            Ok(cidrs) => Decision::Assign(cidrs),
            Err(lack) => Decision::Lacking(lack),
        };
    }
    // A Node with one family keeps it when the VM has two families now.
    let offered: Vec<_> = vm.aliases.first().into_iter().chain(&vm.ipv6).collect();
    let is_offered = |text: &String| cidr::parse(text).is_ok_and(|net| offered.contains(&&net));
    if has.iter().all(is_offered) { Decision::Settled } else { Decision::Mismatch }
}

/// A VM has no range of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot assign an {0} pod CIDR to the Node, although --service-cluster-ip-range has this family: its VM has no {0} range; add one to the VM"
)]
pub(crate) struct Lack(Family);

impl Families {
    /// One range of each family.
    pub(crate) fn of(&self, vm: &PodRanges) -> Result<Vec<IpNet>, Lack> {
        let first = |family| {
            let mut all = vm.aliases.iter().copied().chain(vm.ipv6);
            all.find(|range| Family::of(range) == family).ok_or(Lack(family))
        };
        self.0.iter().map(|family| first(*family)).collect()
    }
}

/// Upstream's words.
const MESSAGE: &str = "NodeController create implicit route";
/// A Node that differs from its VM is looked at again this often.
const RECHECK: Duration = Duration::from_secs(60);
/// A look again at a VM that had nothing needs a read as young as this.
const YOUNG: Duration = Duration::from_secs(5);

/// The pauses between attempts for one Node, without end.
pub(super) const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(250), Duration::from_secs(15), Jitter::Around(0.5));
/// After so many failures in a row a Node is tried once in a minute.
const MANY_FAILURES: u32 = 20;
const SELDOM: Duration = Duration::from_secs(60);

/// Copies.
pub(super) struct Copier<C: Cloud> {
    pub(super) all: Arc<CloudNodes<C>>,
    pub(super) families: Families,
}

/// Whether a Node that changed is worked on: it has no pod CIDRs, or its network is not said to be
/// ready.
pub(super) fn wants(node: &CloudNode) -> bool {
    node.node.pod_cidrs.is_empty() || !node.network_is_ready || node.network_taint
}

impl<C: Cloud> Reconcile for Copier<C> {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let Some(node) = self.all.core.nodes.get(name) else { return Ok(Next::Done) };
        if let Some(ended) = self.all.leave_unselected(&node.node).await {
            return ended;
        }
        // Without its VM nothing can be done; the update that names it brings the Node back.
        if node.node.deleting || node.provider_id.is_empty() {
            return Ok(Next::Done);
        }
        match self.copy(&node).await {
            Ok(next) | Err(Ok(next)) => Ok(next),
            Err(Err(retry)) => Err(self.paced(name, retry)),
        }
    }
}

impl<C: Cloud> Copier<C> {
    async fn copy(&self, node: &CloudNode) -> Result<Next, Ended> {
        // What we have written was read of the VM just then.
        let is_ours = self.all.claims().shows_ours(&node.node);
        let vm = self.all.vm(node, if is_ours { RECHECK } else { YOUNG }).await?;
        let has = self.all.claims().pod_cidrs(&node.node);
        match decide(&has, &vm, &self.families) {
            Decision::NotAvailable => {
                let why = "its VM has no alias range and no IPv6 range";
                self.all.core.events.report(&node.node, NOT_AVAILABLE, why);
                Err(Err(Retry::expected(why)))
            }
            Decision::Lacking(lack) => Err(Err(Retry::expected(lack))),
            Decision::Mismatch => {
                self.all.core.events.report(&node.node, MISMATCH, &difference(&has, &vm));
                Ok(Next::After(RECHECK))
            }
            Decision::Settled => {
                self.all.make_ready(node, MESSAGE).await?;
                Ok(Next::Done)
            }
            Decision::Assign(cidrs) => {
                self.all.write_named(&node.node, &cidrs).await?;
                self.all.make_ready(node, MESSAGE).await?;
                Ok(Next::Done)
            }
        }
    }

    /// A Node that fails for long is tried seldom, without end.
    fn paced(&self, name: &Arc<str>, retry: Retry) -> Retry {
        if self.all.core.queue.failures(name) < MANY_FAILURES {
            return retry;
        }
        let pause = retry.pause().max(SELDOM);
        retry.at_least(pause)
    }
}

/// For people: what the Node has, and its VM.
pub(super) fn difference(has: &[String], vm: &PodRanges) -> String {
    let ranges: Vec<_> = vm.aliases.iter().chain(&vm.ipv6).map(cidr::canonical).collect();
    format!(
        "the Node has {}, and its VM {}; pod CIDRs cannot be changed: give the VM what the Node has, \
         or re-create the Node",
        has.join(", "),
        ranges.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(aliases: &[&str], ipv6: &str) -> PodRanges {
        let aliases = aliases.iter().map(|text| text.parse().unwrap()).collect();
        PodRanges { aliases, ipv6: ipv6.parse().ok() }
    }

    fn decide_for(has: &[&str], vm: &PodRanges, services: &[&str]) -> Decision {
        let has: Vec<_> = has.iter().map(ToString::to_string).collect();
        let services: Vec<_> = services.iter().map(|text| text.parse().unwrap()).collect();
        decide(&has, vm, &Families::of_services(&services))
    }

    const DUAL: [&str; 2] = ["10.96.0.0/16", "fd01::/112"];

    #[test]
    fn nothing_found_is_told_whatever_the_node_has() {
        for has in [&[][..], &["10.0.0.0/24"]] {
            assert_eq!(decide_for(has, &vm(&[], ""), &[]), Decision::NotAvailable);
        }
    }

    #[test]
    fn the_first_alias_becomes_the_pod_cidr() {
        let assign = decide_for(&[], &vm(&["10.0.0.0/24", "10.0.1.0/24"], ""), &[]);
        assert_eq!(assign, Decision::Assign(vec!["10.0.0.0/24".parse().unwrap()]));
    }

    #[test]
    fn two_families_are_written_together_or_not_at_all() {
        let both = vm(&["10.0.0.0/24"], "fd00::/112");
        let cidrs = ["10.0.0.0/24", "fd00::/112"].map(|text| text.parse().unwrap());
        assert_eq!(decide_for(&[], &both, &DUAL), Decision::Assign(cidrs.to_vec()));
        let lacking = decide_for(&[], &vm(&["10.0.0.0/24"], ""), &DUAL);
        assert!(matches!(lacking, Decision::Lacking(_)), "{lacking:?}");
    }

    #[test]
    fn what_is_equal_is_settled_also_in_another_spelling_and_with_one_family_of_two() {
        let both = vm(&["10.0.0.0/24"], "fd00::/112");
        for has in [&["10.0.0.0/24"][..], &["010.0.0.0/24"], &["10.0.0.0/24", "FD00::/112"]] {
            assert_eq!(decide_for(has, &both, &DUAL), Decision::Settled, "{has:?}");
        }
    }

    #[test]
    fn what_differs_is_a_mismatch_and_garbage_too() {
        let both = vm(&["10.0.0.0/24", "10.0.1.0/24"], "fd00::/112");
        for has in [&["10.0.1.0/24"][..], &["10.0.0.0/25"], &["10.0.0.0/24", "fd01::/112"], &["x"]]
        {
            assert_eq!(decide_for(has, &both, &DUAL), Decision::Mismatch, "{has:?}");
        }
    }
}

#[cfg(test)]
mod families_tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_services_say_which_families_and_in_which_order() {
        let vm = PodRanges {
            aliases: nets(&["10.0.0.0/24", "10.1.0.0/24"]),
            ipv6: Some("fd00::/112".parse().unwrap()),
        };
        for (services, expected) in [
            (&[][..], &["10.0.0.0/24"][..]),
            (&["10.96.0.0/16"], &["10.0.0.0/24"]),
            (&["fd01::/112"], &["fd00::/112"]),
            (&["10.96.0.0/16", "fd01::/112"], &["10.0.0.0/24", "fd00::/112"]),
            (&["fd01::/112", "10.96.0.0/16"], &["fd00::/112", "10.0.0.0/24"]),
        ] {
            let families = Families::of_services(&nets(services));
            assert_eq!(families.of(&vm), Ok(nets(expected)), "{services:?}");
        }
    }

    #[test]
    fn a_family_that_the_vm_has_not_is_named() {
        let (v4, v6) = (nets(&["10.0.0.0/24"]), Some("fd00::/112".parse().unwrap()));
        let dual = Families::of_services(&nets(&["10.96.0.0/16", "fd01::/112"]));
        assert_eq!(dual.of(&PodRanges { aliases: v4, ipv6: None }), Err(Lack(Family::V6)));
        assert_eq!(dual.of(&PodRanges { aliases: vec![], ipv6: v6 }), Err(Lack(Family::V4)));
    }
}
