//! [`Resolver`]: from the host of an object to the addresses that are dialled for it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::dial_policy::DialPolicy;
use crate::names::{Asker, Names};

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
    /// The host has no address, or nobody could say.
    #[error("{0}")]
    Unknown(#[source] Arc<io::Error>),
    /// None of its addresses may be dialled.
    #[error("its address may not be dialled")]
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
    /// There is none, or none that may be dialled.
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

    /// Asks again next time: nobody could be reached at these addresses.
    pub(crate) fn forget(&self, host: &str) {
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
