//! What the CloudAllocator does for a Node, by what the Node and its VM have. No I/O.

use cidr::IpNet;

use super::families::{Families, Lack};
use super::provider::VmRanges;

/// What is to be done for a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The VM has nothing for pods, or not yet: told, and tried again.
    NotAvailable,
    /// The VM has no range of a family: tried again.
    Lacking(Lack),
    /// These are to become the Node's pod CIDRs, and its network ready.
    Assign(Vec<IpNet>),
    /// The Node has them: its network is ready.
    Settled,
    /// The Node has others, which cannot be changed (`rule:cloud-and-node-disagree`).
    Mismatch,
}

/// Decides; `has` are the pod CIDRs of the Node as they are written there.
pub(super) fn decide(has: &[String], vm: &VmRanges, families: &Families) -> Decision {
    if vm.first().is_none() {
        return Decision::NotAvailable;
    }
    if has.is_empty() {
        return match families.of(vm) {
            Ok(cidrs) => Decision::Assign(cidrs),
            Err(lack) => Decision::Lacking(lack),
        };
    }
    // One family where there are two by now stays so.
    let offered: Vec<_> = vm.aliases.first().into_iter().chain(&vm.ipv6).collect();
    let is_offered = |text: &String| cidr::parse(text).is_ok_and(|net| offered.contains(&&net));
    if has.iter().all(is_offered) { Decision::Settled } else { Decision::Mismatch }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(aliases: &[&str], ipv6: &str) -> VmRanges {
        let aliases = aliases.iter().map(|text| text.parse().unwrap()).collect();
        VmRanges { aliases, ipv6: ipv6.parse().ok() }
    }

    fn decide_for(has: &[&str], vm: &VmRanges, services: &[&str]) -> Decision {
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

    /// `rule:cloud-and-node-disagree`
    #[test]
    fn what_differs_is_a_mismatch_and_garbage_too() {
        let both = vm(&["10.0.0.0/24", "10.0.1.0/24"], "fd00::/112");
        for has in [&["10.0.1.0/24"][..], &["10.0.0.0/25"], &["10.0.0.0/24", "fd01::/112"], &["x"]]
        {
            assert_eq!(decide_for(has, &both, &DUAL), Decision::Mismatch, "{has:?}");
        }
    }
}
