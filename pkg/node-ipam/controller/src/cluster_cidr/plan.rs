//! [`Plan`]: what a ClusterCIDR's spec comes to, or what is wrong with it.

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
    /// Address bits inside a block.
    pub(crate) host_bits: u8,
}

/// Why a ClusterCIDR cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum SpecError {
    /// There is nothing to give out.
    #[error("it has neither ipv4 nor ipv6; set one of them")]
    NoRange,
    /// Not a CIDR.
    #[error("{field}: {error}")]
    Unreadable {
        /// `ipv4` or `ipv6`.
        field: &'static str,
        /// What is wrong with it.
        error: ParseError,
    },
    /// A CIDR of the other family.
    #[error("{field}: {range} is not a range of {wanted}")]
    Family {
        /// `ipv4` or `ipv6`.
        field: &'static str,
        /// What was given.
        range: IpNet,
        /// What belongs there.
        wanted: Family,
    },
    /// Blocks that are too small or larger than the range.
    #[error("perNodeHostBits is {given}, and {range} takes {MIN_HOST_BITS} to {most}")]
    HostBits {
        /// What was given.
        given: i64,
        /// The range that does not take it.
        range: IpNet,
        /// The most it takes.
        most: u8,
    },
    /// No block of the smallest size fits.
    #[error("{0} is too small: a block has {MIN_HOST_BITS} host bits at least")]
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
        let ranges = [("ipv4", &spec.ipv4, Family::V4), ("ipv6", &spec.ipv6, Family::V6)];
        let mut pools = Vec::new();
        let mut host_bits = MIN_HOST_BITS;
        for (field, text, family) in ranges {
            let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else { continue };
            let range = cidr::parse(text);
            let range = range.map_err(|error| SpecError::Unreadable { field, error })?;
            if Family::of(&range) != family {
                return Err(SpecError::Family { field, range, wanted: family });
            }
            host_bits = judged_bits(spec.per_node_host_bits, range)?;
            pools.push(Pool::new(range, family.width() - host_bits, rules.ipv6_bits)?);
        }
        if pools.is_empty() {
            return Err(SpecError::NoRange);
        }
        let selector = spec.node_selector.as_ref();
        let selector = selector.map(|it| Selector::read(it, rules.terms)).transpose()?;
        Ok(Self { selector, pools, host_bits })
    }
}

fn judged_bits(given: i64, range: IpNet) -> Result<u8, SpecError> {
    let most = range.max_prefix_len() - range.prefix_len();
    if most < MIN_HOST_BITS {
        return Err(SpecError::TooSmall(range));
    }
    match u8::try_from(given) {
        Ok(bits) if (MIN_HOST_BITS..=most).contains(&bits) => Ok(bits),
        _ => Err(SpecError::HostBits { given, range, most }),
    }
}

#[cfg(test)]
mod tests;
