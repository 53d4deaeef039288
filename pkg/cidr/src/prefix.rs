//! A CIDR as text and as numbers.
//!
//! Text is read leniently and written canonically. Flags and the podCIDRs of every Node are read, so no text may cause a
//! panic. Like the programs that this one replaces, the reader drops blanks around a CIDR, masks host bits, takes leading
//! zeros as decimal, and reads an IPv4-mapped CIDR as IPv4. The writer uses RFC 5952 without host bits: since 1.36 the
//! API server takes nothing else.
//!
//! Pools and claims compare CIDRs as numbers ([`Prefix`]), and match them to pools by [`Family`], never by their place in
//! a list (`rule:block-is-used-while-claimed`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use thiserror::Error;

/// How much of a text an error repeats. The longest valid CIDR has 49 characters.
const QUOTED_CHARS: usize = 64;

/// The prefix under which IPv6 writes IPv4 addresses (RFC 4291 2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

/// The text is not a CIDR. The quoted text is cut after a few dozen characters, since it may come
/// from any Node object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The text has no `/`.
    #[error(
        "cannot read CIDR {text:?}: the prefix length is missing, write it as <address>/<length>"
    )]
    NoPrefix {
        /// The text that was read.
        text: String,
    },
    /// The part before the `/` is not an IP address.
    #[error("cannot read CIDR {text:?}: the part before '/' is not an IPv4 or IPv6 address")]
    Address {
        /// The text that was read.
        text: String,
    },
    /// The part after the `/` is not a number, or longer than the address.
    #[error("cannot read CIDR {text:?}: the prefix length must be a number from 0 to {max}")]
    PrefixLength {
        /// The text that was read.
        text: String,
        /// The longest prefix of the address family.
        max: u8,
    },
}

/// Reads a CIDR and masks its host bits.
///
/// An IPv4-mapped IPv6 CIDR (`::ffff:10.0.0.0/104`) is the IPv4 CIDR it stands for: both name the
/// same addresses, and the two spellings must not be given to two nodes.
pub fn parse(text: &str) -> Result<IpNet, ParseError> {
    let text = text.trim();
    let (address, length) =
        text.split_once('/').ok_or_else(|| ParseError::NoPrefix { text: quoted(text) })?;
    let address =
        parse_address(address).ok_or_else(|| ParseError::Address { text: quoted(text) })?;
    let max = Family::of(&IpNet::from(address)).width();
    let length = parse_decimal(length)
        .and_then(|length| IpNet::new(address, length).ok())
        .ok_or_else(|| ParseError::PrefixLength { text: quoted(text), max })?;
    Ok(unmapped(length.trunc()))
}

/// The one text of a CIDR: RFC 5952, lower case, no host bits.
pub fn canonical(net: &IpNet) -> String {
    net.trunc().to_string()
}

fn parse_address(text: &str) -> Option<IpAddr> {
    match text.rsplit_once(':') {
        None => parse_ipv4(text).map(IpAddr::V4),
        // The IPv4 notation at the end of an IPv6 address may have leading zeros as well.
        Some((head, tail)) if tail.contains('.') => {
            let low = parse_ipv4(tail)?.to_bits();
            let plain = format!("{head}:{:x}:{:x}", low >> 16, low & 0xffff);
            plain.parse().ok().map(IpAddr::V6)
        }
        Some(_) => text.parse().ok().map(IpAddr::V6),
    }
}

fn parse_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = parse_decimal(parts.next()?)?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Digits only, since `u8::from_str` also takes a plus sign.
fn parse_decimal(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn unmapped(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let inside = v6.prefix_len().checked_sub(MAPPED_PREFIX).zip(v6.addr().to_ipv4_mapped());
    inside.and_then(|(length, v4)| IpNet::new(v4.into(), length).ok()).unwrap_or(net)
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}

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

#[cfg(test)]
mod tests;
