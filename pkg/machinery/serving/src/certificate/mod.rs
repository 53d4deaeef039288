//! The serving certificate: where it comes from, and how it stays fresh (host.md 5.1).
//!
//! Three sources: the two files of the flags, a pair kept in `--cert-dir`, or a pair in memory.
//! [`Keeper`] loads it, then looks again every minute; handshakes take what [`Shown`] holds.

mod keeper;
mod pair;
mod self_signed;

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

pub(crate) use keeper::Keeper;

/// The pair that new handshakes get. One for all names: probes come by IP address.
#[derive(Debug)]
pub(crate) struct Shown(RwLock<Arc<CertifiedKey>>);

impl Shown {
    fn new(key: CertifiedKey) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(key))))
    }

    fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

#[cfg(test)]
mod tests;
