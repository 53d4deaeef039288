//! Names, addresses and ranges, read as strictly as the API server reads them, and its words for
//! those that it refuses.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use kube_api::{is_dns_label, is_dns_subdomain};

pub(crate) const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
pub(crate) const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
pub(crate) const PORT: &str = "must be between 1 and 65535, inclusive";
pub(crate) const IMMUTABLE: &str = "field is immutable";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Why a text is no RFC 1123 label.
pub(crate) fn label_problem(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    (!is_dns_label(text)).then_some(LABEL)
}

/// Why a text is no RFC 1123 subdomain.
pub(crate) fn subdomain_problem(text: &str) -> Option<&'static str> {
    if text.len() > 253 {
        return Some("must be no more than 253 characters");
    }
    (!is_dns_subdomain(text)).then_some(SUBDOMAIN)
}

/// An IP address. An IPv4 address in IPv6 notation is refused.
pub(crate) fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|address| !is_mapped(address))
}

/// A CIDR; bits after the prefix may be set.
pub(crate) fn cidr(text: &str) -> Option<IpNet> {
    let (_, length) = text.split_once('/')?;
    let is_canonical = length == "0" || !length.starts_with('0');
    let net: IpNet = text.parse().ok()?;
    (is_canonical && !is_mapped(&net.addr())).then_some(net)
}

fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// A date and a time with its zone, as the API server reads them.
pub(crate) fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((date, time)) = text.split_once('t') else { return false };
    let (clock, rest) = time.split_at_checked(8).unwrap_or_default();
    let is_clock = numbers(clock, ':', &[2, 2, 2])
        .is_some_and(|it| matches!(it[..], [0..=23, 0..=59, 0..=59]));
    is_date(date) && is_clock && is_zone(after_fraction(rest))
}

fn is_date(text: &str) -> bool {
    let is_one = |date: Vec<u32>| match date[..] {
        [year, month, day] => (1..=days(year, month)).contains(&day),
        _ => false,
    };
    numbers(text, '-', &[4, 2, 2]).is_some_and(is_one)
}

fn is_zone(text: &str) -> bool {
    let signed = text.strip_prefix(['+', '-']);
    text == "z" || signed.is_some_and(|zone| numbers(zone, ':', &[2, 2]).is_some())
}

/// The text after a fraction of a second, or the whole text without a fraction.
fn after_fraction(text: &str) -> &str {
    let Some(fraction) = text.strip_prefix('.') else { return text };
    let rest = fraction.trim_start_matches(|it: char| it.is_ascii_digit());
    if rest.len() < fraction.len() { rest } else { text }
}

/// Numbers of so many digits each.
fn numbers(text: &str, between: char, digits: &[usize]) -> Option<Vec<u32>> {
    let parts: Vec<&str> = text.split(between).collect();
    let is_number = |(part, digits): (&&str, &usize)| {
        part.len() == *digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let all = parts.len() == digits.len() && parts.iter().zip(digits).all(is_number);
    all.then(|| parts.iter().filter_map(|part| part.parse().ok()).collect())
}

fn days(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// A TCP port.
pub(crate) fn port(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|&port| port > 0)
}

/// The decoded bytes of a base64 text.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    // Go's decoder leaves line ends out.
    let text: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    STANDARD.decode(text).ok()
}

/// Where a connection goes: IPv6 in brackets.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_that_the_api_server_takes() {
        for text in [
            "2026-01-02T03:04:05Z",
            "2024-02-29t23:59:59z",
            "2026-01-02T03:04:05.678+01:00",
            "2000-02-29T00:00:00-11:30",
        ] {
            assert!(is_date_time(text), "{text}");
        }
        for text in [
            "",
            "2026-01-02",
            "2026-01-02 03:04:05Z",
            "2026-01-02T03:04:05",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:60:05Z",
            "2026-01-02T03:04Z",
            "2026-02-29T03:04:05Z",
            "1900-02-29T03:04:05Z",
            "2026-13-01T03:04:05Z",
            "2026-00-01T03:04:05Z",
            "2026-01-00T03:04:05Z",
            "26-01-02T03:04:05Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05+0100",
            "2026-01-02T0é:04:05Z",
            "soonT03:04:05Z",
        ] {
            assert!(!is_date_time(text), "{text}");
        }
    }
}
