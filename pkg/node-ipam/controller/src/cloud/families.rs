//! [`Families`]: of which IP families a Node's pod CIDRs are, and in which order
//! (`rule:families-follow-the-services`).

use cidr::{Family, IpNet};

use super::provider::VmRanges;

/// One or two families, the primary one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Families(Vec<Family>);

/// A VM has no range of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot give the Node an {0} pod CIDR, which the Services of the cluster want: its VM has no such range"
)]
pub(crate) struct Lack(Family);

impl Families {
    /// Those of the service ranges; IPv4 where there are none.
    pub(crate) fn of_services(services: &[IpNet]) -> Self {
        let mut families: Vec<_> = services.iter().map(Family::of).collect();
        families.dedup();
        if families.is_empty() {
            families.push(Family::V4);
        }
        Self(families)
    }

    /// One range of each family.
    pub(crate) fn of(&self, vm: &VmRanges) -> Result<Vec<IpNet>, Lack> {
        let first = |family| {
            let mut all = vm.aliases.iter().copied().chain(vm.ipv6);
            all.find(|range| Family::of(range) == family).ok_or(Lack(family))
        };
        self.0.iter().map(|family| first(*family)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// `rule:families-follow-the-services`
    #[test]
    fn the_services_say_which_families_and_in_which_order() {
        let vm = VmRanges {
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
        assert_eq!(dual.of(&VmRanges { aliases: v4, ipv6: None }), Err(Lack(Family::V6)));
        assert_eq!(dual.of(&VmRanges { aliases: vec![], ipv6: v6 }), Err(Lack(Family::V4)));
    }
}
