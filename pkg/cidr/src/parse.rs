//! Text of CIDRs, read leniently and written canonically. Flags and the podCIDRs of every Node are
//! read, so no text may cause a panic.
//!
//! Like the programs that this one replaces, the reader drops blanks around a CIDR, masks host bits,
//! takes leading zeros as decimal, and reads an IPv4-mapped CIDR as IPv4. The writer uses RFC 5952
//! without host bits: since 1.36 the API server takes nothing else.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use crate::{Family, ParseError};

/// How much of a text an error repeats. The longest valid CIDR has 49 characters.
const QUOTED_CHARS: usize = 64;

/// The prefix under which IPv6 writes IPv4 addresses (RFC 4291 2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

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

#[cfg(test)]
mod tests;
