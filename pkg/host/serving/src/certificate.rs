//! The serving certificate: where it comes from, and how it stays fresh.
//!
//! [`Reloader`] loads it, then looks again every minute; handshakes take what [`Certificates`] hold.

mod named;
mod pair;
mod reloader;
mod self_signed;
mod supplied;

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

pub(crate) use reloader::{Reloader, readable};
pub use supplied::SuppliedCertificate;

/// The pair that new handshakes get, but for names that have one of their own: probes come by IP
/// address.
#[derive(Debug)]
pub(crate) struct Current(RwLock<Arc<CertifiedKey>>);

impl Current {
    fn new(key: CertifiedKey) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(key))))
    }

    fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

#[cfg(test)]
mod tests;
