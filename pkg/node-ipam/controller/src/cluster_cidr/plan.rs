//! [`Plan`]: the pools of a ClusterCIDR's spec, or the reason why it cannot be used.
//!
//! [`Rank`]: the order of the ClusterCIDRs that select a Node, upstream's apart from the name: those
//! with a nodeSelector first; then more requirements that are met, fewer blocks (of two families the
//! smaller number), smaller blocks (of IPv4 if there are any), the lower text of selector, range and name. The first with a
//! free block of each of its ranges serves. One without our finalizer is waited for, a minute at
//! most.

use std::sync::Arc;

use cidr::{Family, IpNet, ParseError, Pool, PoolError};
use thiserror::Error;

use super::selector::{Selector, SelectorError, Terms};
use super::spec::ClusterCidrSpec;

/// The fewest address bits inside a block.
pub(crate) const MIN_HOST_BITS: u8 = 4;

/// The rules that the flags set for all ClusterCIDRs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// How the terms of a selector go together.
    pub(crate) terms: Terms,
    /// The most bits of block index in an IPv6 range.
    pub(crate) ipv6_bits: u8,
}

/// A spec that is in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// `None` for all Nodes.
    pub(crate) selector: Option<Selector>,
    /// One for each family, IPv4 first; at least one.
    pub(crate) pools: Vec<Pool>,
    /// Address bits inside a block of the first pool.
    pub(crate) host_bits: u8,
}

/// Why a ClusterCIDR cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum SpecError {
    /// Neither `ipv4` nor `ipv6` is set.
    #[error("it has neither ipv4 nor ipv6; set one of them")]
    NoRange,
    /// A range is not a CIDR.
    #[error("{field}: {error}")]
    Unreadable {
        /// `ipv4` or `ipv6`.
        field: &'static str,
        /// Why the text is not a range.
        error: ParseError,
    },
    /// A CIDR of the other family.
    #[error("{field}: {range} is not a range of {wanted}")]
    Family {
        /// `ipv4` or `ipv6`.
        field: &'static str,
        /// The value in the spec.
        range: IpNet,
        /// The values that are allowed.
        wanted: Family,
    },
    /// Blocks that are too small or larger than the range.
    #[error("{field} is {given}, but {range} allows {MIN_HOST_BITS} to {most}")]
    HostBits {
        /// The field that has the value.
        field: &'static str,
        /// The value in the spec.
        given: i64,
        /// The range that does not take it.
        range: IpNet,
        /// The most it takes.
        most: u8,
    },
    /// The range is smaller than one block.
    #[error(
        "{0} is smaller than the smallest block, which has {MIN_HOST_BITS} host bits; use a larger range"
    )]
    TooSmall(IpNet),
    /// Too many blocks.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A selector that selects in no way.
    #[error(transparent)]
    Selector(#[from] SelectorError),
}

impl Plan {
    /// Judges a spec.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(crate) fn of(spec: &ClusterCidrSpec, rules: Rules) -> Result<Self, SpecError> {
        let shared = ("perNodeHostBits", spec.per_node_host_bits);
        let own = |field, bits: Option<i64>| bits.map_or(shared, |bits| (field, bits));
        let ipv4 = own("perNodeHostBitsIPv4", spec.per_node_host_bits_ipv4);
        let ipv6 = own("perNodeHostBitsIPv6", spec.per_node_host_bits_ipv6);
        let ranges =
            [("ipv4", &spec.ipv4, Family::V4, ipv4), ("ipv6", &spec.ipv6, Family::V6, ipv6)];
        let mut pools = Vec::new();
        for (field, text, family, bits) in ranges {
            let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else { continue };
            let range = cidr::parse(text);
            let range = range.map_err(|error| SpecError::Unreadable { field, error })?;
            if Family::of(&range) != family {
                return Err(SpecError::Family { field, range, wanted: family });
            }
            let mask = family.width() - judged_bits(bits, range)?;
            pools.push(Pool::new(range, mask, rules.ipv6_bits)?);
        }
        let host_bits = pools.first().map(host_bits).ok_or(SpecError::NoRange)?;
        let selector = spec.node_selector.as_ref();
        let selector = selector.map(|it| Selector::read(it, rules.terms)).transpose()?;
        Ok(Self { selector, pools, host_bits })
    }
}

fn judged_bits((field, given): (&'static str, i64), range: IpNet) -> Result<u8, SpecError> {
    let most = range.max_prefix_len() - range.prefix_len();
    if most < MIN_HOST_BITS {
        return Err(SpecError::TooSmall(range));
    }
    match u8::try_from(given) {
        Ok(bits) if (MIN_HOST_BITS..=most).contains(&bits) => Ok(bits),
        _ => Err(SpecError::HostBits { field, given, range, most }),
    }
}

/// A ClusterCIDR's place among all others, as far as it does not depend on the Node: the lower one
/// is asked first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Objects with a selector come before those for everybody.
    for_everybody: bool,
    /// Fewer blocks first: the wider range is kept for others. Of two families the smaller number.
    blocks: u128,
    /// Smaller blocks first.
    host_bits: u8,
    selector: String,
    /// The IPv4 range if there is one, compared as text.
    range: String,
    /// Last criterion: makes the order total.
    name: Arc<str>,
}

impl Rank {
    /// The rank of the object of this name.
    pub(crate) fn of(name: &Arc<str>, plan: &Plan) -> Self {
        let selector = plan.selector.as_ref();
        Self {
            for_everybody: selector.is_none(),
            blocks: plan.pools.iter().map(cidr::Pool::blocks).min().unwrap_or_default(),
            host_bits: plan.host_bits,
            selector: selector.map(|it| it.text().to_owned()).unwrap_or_default(),
            range: plan.pools.first().map(|pool| cidr::canonical(&pool.cidr())).unwrap_or_default(),
            name: Arc::clone(name),
        }
    }
}

/// Name of the ClusterCIDR.
pub(crate) const NAME: &str = "default-cluster-cidr";

/// The most host bits that both families share when those of IPv4 do not do.
const MOST_SHARED_BITS: u8 = 32;

/// The ClusterCIDR of the pools that the flags come to; `None` without any.
pub(crate) fn spec(pools: &[Pool]) -> Option<ClusterCidrSpec> {
    let range = |family| pools.iter().find(|pool| pool.family() == family);
    let text = |pool: Option<&Pool>| pool.map(|pool| cidr::canonical(&pool.cidr()));
    let (ipv4, ipv6) = (range(Family::V4), range(Family::V6));
    let bits = match (ipv4.map(host_bits), ipv6.map(host_bits)) {
        (None, None) => return None,
        (Some(bits), None) | (None, Some(bits)) => bits.max(MIN_HOST_BITS),
        (Some(ipv4), Some(ipv6)) => shared_bits(ipv4, ipv6),
    };
    // Their own numbers win. Upstream reads the shared one only.
    let own = |pool: Option<&Pool>| {
        let own = pool.map(|pool| host_bits(pool).max(MIN_HOST_BITS));
        own.filter(|own| *own != bits).map(i64::from)
    };
    Some(ClusterCidrSpec {
        per_node_host_bits: i64::from(bits),
        per_node_host_bits_ipv4: own(ipv4),
        per_node_host_bits_ipv6: own(ipv6),
        ipv4: text(ipv4),
        ipv6: text(ipv6),
        node_selector: None,
    })
}

fn host_bits(pool: &Pool) -> u8 {
    pool.family().width() - pool.mask()
}

/// The number for both families that upstream would take.
fn shared_bits(ipv4: u8, ipv6: u8) -> u8 {
    if (MIN_HOST_BITS..=ipv6).contains(&ipv4) {
        ipv4
    } else if (MIN_HOST_BITS..=MOST_SHARED_BITS).contains(&ipv6) {
        ipv6
    } else {
        MIN_HOST_BITS
    }
}

#[cfg(test)]
mod from_flags_tests {
    use super::*;

    fn bits(pools: &[(&str, u8)]) -> Option<i64> {
        let pool = |&(cidr, mask): &(&str, u8)| Pool::new(cidr.parse().unwrap(), mask, 64).unwrap();
        let pools: Vec<Pool> = pools.iter().map(pool).collect();
        spec(&pools).map(|spec| spec.per_node_host_bits)
    }

    #[test]
    fn the_host_bits_are_those_of_the_masks_where_one_number_can_say_them() {
        for (pools, wanted) in [
            (&[][..], None),
            (&[("10.0.0.0/16", 24)], Some(8)),
            (&[("10.0.0.0/16", 30)], Some(4)),
            (&[("fd00::/56", 64)], Some(64)),
            (&[("fd00::/112", 126)], Some(4)),
            // Those of IPv4 where IPv6 has as many or more.
            (&[("10.0.0.0/16", 24), ("fd00::/56", 64)], Some(8)),
            (&[("fd00::/108", 120), ("10.0.0.0/16", 24)], Some(8)),
            // Those of IPv6 where IPv4 has more, or too few.
            (&[("10.0.0.0/16", 20), ("fd00::/108", 120)], Some(8)),
            (&[("10.0.0.0/16", 30), ("fd00::/108", 120)], Some(8)),
            // Neither does.
            (&[("10.0.0.0/16", 30), ("fd00::/56", 64)], Some(4)),
            (&[("10.0.0.0/16", 24), ("fd00::/112", 126)], Some(4)),
        ] {
            assert_eq!(bits(pools), wanted, "{pools:?}");
        }
    }

    #[test]
    fn a_family_whose_mask_the_shared_number_does_not_say_has_its_own() {
        for (pools, wanted) in [
            (&[("10.0.0.0/16", 24)][..], (None, None)),
            (&[("fd00::/56", 64)], (None, None)),
            (&[("10.0.0.0/16", 24), ("fd00::/108", 120)], (None, None)),
            (&[("10.0.0.0/16", 24), ("fd00::/56", 64)], (None, Some(64))),
            (&[("10.0.0.0/16", 20), ("fd00::/108", 120)], (Some(12), None)),
            (&[("10.0.0.0/16", 30), ("fd00::/56", 64)], (None, Some(64))),
        ] {
            let pool =
                |&(cidr, mask): &(&str, u8)| Pool::new(cidr.parse().unwrap(), mask, 64).unwrap();
            let pools: Vec<Pool> = pools.iter().map(pool).collect();
            let spec = spec(&pools).unwrap();
            let own = (spec.per_node_host_bits_ipv4, spec.per_node_host_bits_ipv6);
            assert_eq!(own, wanted, "{pools:?}");
            let rules = Rules { terms: super::super::selector::Terms::Or, ipv6_bits: 64 };
            let masks: Vec<u8> =
                Plan::of(&spec, rules).unwrap().pools.iter().map(Pool::mask).collect();
            let given = pools.iter().map(|pool| pool.mask().min(pool.family().width() - 4));
            assert_eq!(masks, given.collect::<Vec<_>>());
        }
    }

    #[test]
    fn ranges_are_reported_by_family_whatever_their_order() {
        let pools = [("fd00::/108", 120), ("10.0.0.0/16", 24)]
            .map(|(cidr, mask)| Pool::new(cidr.parse().unwrap(), mask, 64).unwrap());
        let spec = spec(&pools).unwrap();
        assert_eq!(spec.ipv4.as_deref(), Some("10.0.0.0/16"));
        assert_eq!(spec.ipv6.as_deref(), Some("fd00::/108"));
        assert_eq!(spec.node_selector, None);
    }
}

#[cfg(test)]
mod tests;
