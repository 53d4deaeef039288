//! A CIDR as numbers, the form in which pools and claims compare them. Crate-private.
//!
//! The two address families. CIDRs are matched to pools by family, never by their place in a list
//! (`rule:block-is-used-while-claimed`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// A CIDR without host bits. The order (family, network, length) puts every CIDR directly before
/// the ones inside it, which the range scan of the claims index relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Prefix {
    pub(crate) family: Family,
    pub(crate) network: u128,
    pub(crate) length: u8,
}

impl Prefix {
    pub(crate) fn of(net: &IpNet) -> Self {
        let bits = match net.addr() {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        Self { family: Family::of(net), network: bits, length: net.prefix_len() }
            .widened(net.prefix_len())
    }

    /// The CIDR as text and callers know it; always some, for a prefix that came from one.
    pub(crate) fn to_net(self) -> Option<IpNet> {
        let address = match self.family {
            Family::V4 => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(self.network).ok()?)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(self.network)),
        };
        IpNet::new(address, self.length).ok()
    }

    /// The CIDR of `length` around this one; itself when `length` is not shorter.
    pub(crate) fn widened(self, length: u8) -> Self {
        let length = length.min(self.length);
        let network = self.network & !host_bits(self.family, length);
        Self { network, length, ..self }
    }

    pub(crate) fn last(self) -> u128 {
        self.network + host_bits(self.family, self.length)
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.family == other.family && self.network <= other.last() && other.network <= self.last()
    }
}

/// The bits below a prefix. A single address has none, and there the shift is out of range.
fn host_bits(family: Family, length: u8) -> u128 {
    let bits = u32::from(family.width() - length);
    u128::MAX.checked_shr(128 - bits).unwrap_or(0)
}

/// An IP address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4, 32-bit addresses.
    V4,
    /// IPv6, 128-bit addresses.
    V6,
}

impl Family {
    /// The family of a CIDR.
    pub fn of(net: &IpNet) -> Self {
        match net {
            IpNet::V4(_) => Self::V4,
            IpNet::V6(_) => Self::V6,
        }
    }

    /// Bits in an address, which is also the longest prefix length.
    pub fn width(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// The most bits of block index a pool takes, whatever the caller allows
/// (`rule:cost-follows-claims`).
pub(crate) const MAX_BITS: u8 = 64;
