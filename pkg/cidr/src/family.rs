//! The two address families. CIDRs are matched to pools by family, never by their place in a list
//! (`rule:families-meet-by-address`).

use std::fmt;

use ipnet::IpNet;

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
