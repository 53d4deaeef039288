//! [`DialPolicy`]: which addresses may be dialled for somebody who wrote them into an object.

use std::io;
use std::net::{IpAddr, SocketAddr};

use futures::FutureExt as _;
use ipnet::IpNet;
use transport::Names;

/// Never meant for machines or API servers, or worse: this host, the services that give credentials
/// to cloud machines, and everybody at once.
const REFUSED: [&str; 12] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "100.100.100.200/32",
    "168.63.129.16/32",
    "::/128",
    "::1/128",
    "fe80::/10",
    "ff00::/8",
    "fd00:ec2::254/128",
];

/// Which addresses may be dialled (`rule:the-network-is-asked-with-care`).
#[derive(Clone, Debug, Default)]
pub struct DialPolicy {
    refused: Vec<IpNet>,
    allowed: Vec<IpNet>,
    own: Vec<SocketAddr>,
}

/// A text that is no CIDR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no CIDR, such as 10.0.0.0/8")]
pub struct DialPolicyError(String);

impl DialPolicy {
    /// Refuses the addresses of `refused` beside those that nobody may mean; those of `allowed` are
    /// dialled all the same.
    ///
    /// # Errors
    /// One is no CIDR.
    pub fn new(refused: &[String], allowed: &[String]) -> Result<Self, DialPolicyError> {
        let read = |texts: &[String]| {
            let read = texts.iter().map(|text| text.parse::<IpNet>().map_err(|_| text.clone()));
            read.collect::<Result<Vec<_>, _>>().map_err(DialPolicyError)
        };
        let mut all: Vec<IpNet> = REFUSED.iter().filter_map(|text| text.parse().ok()).collect();
        all.extend(read(refused)?);
        Ok(Self { refused: all, allowed: read(allowed)?, own: Vec::new() })
    }

    /// Of addresses that every host has only this one is left to refuse.
    #[cfg(test)]
    pub(super) fn refused_none(&mut self) {
        self.refused.clear();
    }

    #[cfg(test)]
    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Refuses these addresses of the management API as well, each at its port.
    #[must_use]
    pub fn without(self, own: Vec<SocketAddr>) -> Self {
        Self { own, ..self }
    }

    /// Whether this may be dialled.
    pub(super) fn permits(&self, address: SocketAddr) -> bool {
        let canonical = SocketAddr::new(address.ip().to_canonical(), address.port());
        self.permits_host(canonical.ip()) && !self.own.contains(&canonical)
    }

    /// Whether this host may be dialled at some port.
    fn permits_host(&self, address: IpAddr) -> bool {
        self.is_allowed(address) || !holds(&self.refused, address.to_canonical())
    }

    /// Whether a name may lead to this host. At which port it will be dialled is not known, so a name of the management
    /// API is refused for all of them.
    fn permits_name_of(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_own = self.own.iter().any(|own| own.ip().to_canonical() == address);
        self.permits_host(address) && (!is_own || self.is_allowed(address))
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        holds(&self.allowed, address.to_canonical())
    }
}

fn holds(nets: &[IpNet], address: IpAddr) -> bool {
    nets.iter().any(|net| net.contains(&address))
}

/// The system's resolver, which gives no address that may not be dialled: a name that resolves to
/// another one a moment later changes nothing.
pub(super) fn guarded_names(policy: &DialPolicy) -> Names {
    let policy = policy.clone();
    Names::new(move |host| {
        let policy = policy.clone();
        let found = async move {
            let found: Vec<IpAddr> =
                tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect();
            if found.iter().all(|address| policy.permits_name_of(*address)) {
                Ok(found)
            } else {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        };
        found.boxed()
    })
}
