//! [`Resolver`]: from the host of an object to the addresses that are dialled for it.
//! [`DialPolicy`]: which of them may be dialled.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;

use crate::names::{Asker, Names};

/// Where no API server, machine or proxy is: link-local, multicast and reserved addresses, this host
/// by its unspecified address, and the services that give credentials to cloud machines.
const REFUSED: [&str; 17] = [
    "0.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/128",
    "fe80::/10",
    "ff00::/8",
    // Alibaba, Azure, Oracle (classic).
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    // AWS (metadata, pod identity and other services of its hosts), Google, Oracle, Scaleway, Akamai, Alibaba.
    "fd00:ec2::/32",
    "fd20:ce::254/128",
    "fd00:c1::a9fe:a9fe/128",
    "fd00:42::42/128",
    "fd00:a9fe:a9fe::1/128",
    "fd00:100::100:200/128",
    // Site-local, which is deprecated and never routed.
    "fec0::/10",
];

/// The addresses that may be dialled (`rule:foreign-addresses-are-judged-when-they-are-dialled`).
#[derive(Clone, Debug)]
pub struct DialPolicy {
    refused: Vec<IpNet>,
    allowed: Vec<IpNet>,
    own: Vec<SocketAddr>,
}

/// A text that is no CIDR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a CIDR such as 10.0.0.0/8")]
pub struct DialPolicyError(String);

impl Default for DialPolicy {
    /// Refuses link-local addresses, those of the clouds' metadata services, and those at which
    /// no address answers.
    fn default() -> Self {
        let refused = REFUSED.iter().filter_map(|text| text.parse().ok()).collect();
        Self { refused, allowed: Vec::new(), own: Vec::new() }
    }
}

impl DialPolicy {
    /// Refuses the addresses of `refused` as well as those of the default; those of `allowed` are
    /// dialled all the same.
    pub fn new(refused: &[String], allowed: &[String]) -> Result<Self, DialPolicyError> {
        let read = |texts: &[String]| {
            let read = texts.iter().map(|text| text.parse::<IpNet>().map_err(|_| text.clone()));
            read.collect::<Result<Vec<_>, _>>().map_err(DialPolicyError)
        };
        let mut policy = Self::default();
        policy.refused.extend(read(refused)?);
        policy.allowed = read(allowed)?;
        Ok(policy)
    }

    /// Refuses these addresses of the management API as well, each at its port.
    #[must_use]
    pub fn without(self, own: Vec<SocketAddr>) -> Self {
        Self { own, ..self }
    }

    /// Whether this may be dialled. An IPv6 address that leads to an IPv4 address is judged as both.
    pub fn permits(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let inner = match ip {
            IpAddr::V6(ip) => embedded(ip).map(|inner| inner.map(IpAddr::V4)),
            IpAddr::V4(_) => [None; 2],
        };
        let mut forms = std::iter::once(ip).chain(inner.into_iter().flatten());
        let own =
            |form| self.own.iter().any(|own| own.port() == address.port() && own.ip() == form);
        if forms.clone().any(own) {
            return false;
        }
        holds(&self.allowed, ip) || !forms.any(|form| holds(&self.refused, form))
    }
}

fn holds(nets: &[IpNet], address: IpAddr) -> bool {
    nets.iter().any(|net| net.contains(&address))
}

/// The IPv4 addresses to which gateways translate an IPv6 address, or tunnel what is sent there.
fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let segments = address.segments();
    let at = |first: usize, mask: u16| {
        let [a, b] = (segments[first] ^ mask).to_be_bytes();
        let [c, d] = (segments[first + 1] ^ mask).to_be_bytes();
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Loopback and the unspecified address are no IPv4 addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None; 2],
        // NAT64 (RFC 6052 and RFC 8215), SIIT (RFC 7915), IPv4-compatible, ISATAP (RFC 5214).
        [0x64, 0xff9b, 0, 0, 0, 0, ..]
        | [0x64, 0xff9b, 1, ..]
        | [0, 0, 0, 0, 0xffff | 0, 0, ..]
        | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => [at(6, 0), None],
        // 6to4 (RFC 3056).
        [0x2002, ..] => [at(1, 0), None],
        // Teredo (RFC 4380): its server, and its client with all bits turned.
        [0x2001, 0, ..] => [at(2, 0), at(6, 0xffff)],
        _ => [None; 2],
    }
}

/// The addresses of hosts, without those that may not be dialled. What it gives is what is dialled,
/// so that a name which leads somewhere else a moment later changes nothing
/// (`rule:foreign-addresses-are-judged-when-they-are-dialled`).
#[derive(Debug, Default)]
pub struct Resolver {
    names: Names,
    policy: DialPolicy,
}

/// Why there is no address to dial.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unresolved {
    /// The host has no address, or the lookup failed.
    #[error("{0}")]
    Unknown(#[source] Arc<io::Error>),
    /// None of its addresses may be dialled.
    #[error("dialling its address is not allowed")]
    Denied,
}

impl Resolver {
    /// Asks `names`, and gives what `policy` permits.
    pub fn new(names: Names, policy: DialPolicy) -> Self {
        Self { names, policy }
    }

    /// The addresses of `host`, a name or an address (IPv6 in brackets or without), at least one.
    ///
    /// # Errors
    /// The host has no address that may be dialled.
    pub async fn addresses(
        &self,
        host: &str,
        port: u16,
        asker: &Asker,
    ) -> Result<Vec<SocketAddr>, Unresolved> {
        let found = match literal(host) {
            Some(address) => [address].into(),
            None => self.names.addresses(host, asker).await.map_err(Unresolved::Unknown)?,
        };
        let all = found.iter().map(|&address| SocketAddr::new(address, port));
        let permitted: Vec<_> = all.filter(|address| self.policy.permits(*address)).collect();
        if permitted.is_empty() { Err(Unresolved::Denied) } else { Ok(permitted) }
    }

    /// Whether `host` is an address that may not be dialled, whoever dials it for us.
    pub(crate) fn denies_literal(&self, host: &str, port: u16) -> bool {
        literal(host).is_some_and(|ip| !self.policy.permits(SocketAddr::new(ip, port)))
    }

    /// Forgets the addresses: no server could be reached there. The next call asks again.
    pub fn forget(&self, host: &str) {
        self.names.forget(host);
    }
}

impl From<Names> for Resolver {
    fn from(names: Names) -> Self {
        Self::new(names, DialPolicy::default())
    }
}

/// The address that `host` spells out.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn judge(policy: &DialPolicy, rows: &[(&str, bool)]) {
        for (address, expected) in rows {
            assert_eq!(policy.permits(address.parse().unwrap()), *expected, "{address}");
        }
    }

    /// rule:foreign-addresses-are-judged-when-they-are-dialled
    #[test]
    fn link_local_and_metadata_addresses_are_refused_by_default_in_every_form() {
        assert_eq!(DialPolicy::default().refused.len(), REFUSED.len(), "each of them is a CIDR");
        let rows = [
            ("0.0.0.0:22", false),
            ("169.254.169.254:80", false),
            ("100.100.100.200:80", false),
            ("168.63.129.16:80", false),
            ("192.0.0.192:80", false),
            ("[fd00:ec2::254]:80", false),
            ("[fd00:ec2::23]:80", false),
            ("[fd20:ce::254]:80", false),
            ("[fd00:c1::a9fe:a9fe]:80", false),
            ("[fd00:42::42]:80", false),
            ("[fd00:a9fe:a9fe::1]:80", false),
            ("[fe80::1]:22", false),
            ("[fe80::a9fe:a9fe]:80", false),
            ("[::]:22", false),
            ("224.0.0.1:22", false),
            ("[ff02::1]:22", false),
            ("255.255.255.255:22", false),
            ("[::ffff:169.254.169.254]:80", false),
            ("[64:ff9b::a9fe:a9fe]:80", false),
            ("[64:ff9b:1::a9fe:a9fe]:80", false),
            ("[::ffff:0:169.254.169.254]:80", false),
            ("[::169.254.169.254]:80", false),
            ("[2002:a9fe:a9fe::1]:80", false),
            ("[2001:0:a9fe:a9fe::1]:80", false),
            ("[2001::5601:5601]:80", false),
            ("[2001:db8::5efe:a9fe:a9fe]:80", false),
            ("127.0.0.1:22", true),
            ("[::1]:22", true),
            ("10.0.0.1:22", true),
            ("[64:ff9b::10.0.0.1]:22", true),
            ("[2002:a00:1::1]:22", true),
            ("[2001:db8::1]:22", true),
            ("[fd00::1]:6443", true),
        ];
        judge(&DialPolicy::default(), &rows);
    }

    /// rule:foreign-addresses-are-judged-when-they-are-dialled
    #[test]
    fn what_the_operator_denies_is_refused_and_what_is_allowed_is_dialled_all_the_same() {
        let refused = texts(&["127.0.0.0/8", "::1/128", "10.9.0.0/16"]);
        let policy = DialPolicy::new(&refused, &texts(&["127.0.0.2/32"])).unwrap();
        let policy = policy.without(vec!["10.0.0.1:6443".parse().unwrap()]);
        let rows = [
            ("127.0.0.1:22", false),
            ("127.0.0.2:22", true),
            ("[::ffff:127.0.0.2]:22", true),
            ("[::1]:22", false),
            ("[::ffff:127.0.0.1]:22", false),
            ("[64:ff9b::7f00:1]:22", false),
            ("10.9.1.1:22", false),
            ("10.0.0.1:6443", false),
            ("[::ffff:10.0.0.1]:6443", false),
            ("[64:ff9b::a00:1]:6443", false),
            ("10.0.0.1:22", true),
        ];
        judge(&policy, &rows);
        let error = DialPolicy::new(&texts(&["10.0.0.0"]), &[]).unwrap_err();
        assert_eq!(error.to_string(), "\"10.0.0.0\" is not a CIDR such as 10.0.0.0/8");
    }
}
