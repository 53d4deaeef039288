//! How a listener treats a client's certificate: it ignores the certificate, passes it to the guard
//! unjudged (the secure port, see `delegated_auth::Delegation`), or judges it by a CA of its own (the
//! webhook).
//!
//! A listener that asks for certificates takes any in the handshake, so that a bad one gets an
//! answer in HTTP, which says more than a TLS alert.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::pki_types::CertificateDer;

use crate::client_ca::{ClientRoots, ShownChain};
use crate::guard::PeerCertificate;
use crate::{ClientCertificates, ServeError};

/// The treatment of clients' certificates by one listener.
pub(crate) enum Clients {
    Ignored,
    /// Asked for; the guard judges.
    Asked,
    Judged(Arc<ClientCa>),
}

impl Clients {
    pub(crate) async fn of(wanted: &ClientCertificates) -> Result<Self, ServeError> {
        Ok(match wanted {
            ClientCertificates::Ignored => Self::Ignored,
            ClientCertificates::Asked => Self::Asked,
            ClientCertificates::Of(path) => Self::Judged(ClientCa::load(path).await?),
        })
    }

    pub(crate) fn are_asked(&self) -> bool {
        !matches!(self, Self::Ignored)
    }

    /// The file that has to be read again now and then.
    pub(crate) fn ca(&self) -> Option<Arc<ClientCa>> {
        match self {
            Self::Judged(ca) => Some(ca.clone()),
            Self::Ignored | Self::Asked => None,
        }
    }

    /// The state of a chain that the peer has shown and proved to own.
    pub(crate) async fn state_of(&self, chain: &[CertificateDer<'static>]) -> PeerCertificate {
        match self {
            _ if chain.is_empty() => PeerCertificate::Absent,
            Self::Ignored => PeerCertificate::Absent,
            Self::Asked => PeerCertificate::Shown(ShownChain::new(chain.to_vec())),
            Self::Judged(ca) => ca.judge(chain).await,
        }
    }
}

/// The certificates of a PEM file, each trusted as a root for clients.
#[derive(Debug)]
pub(crate) struct ClientCa {
    path: PathBuf,
    roots: RwLock<(Vec<u8>, ClientRoots)>,
}

impl ClientCa {
    pub(crate) async fn load(path: &Path) -> Result<Arc<Self>, ServeError> {
        let pem = read(path).await?;
        let roots = roots(path, &pem)?;
        Ok(Arc::new(Self { path: path.to_owned(), roots: RwLock::new((pem, roots)) }))
    }

    /// Reads the file again. Says whether it changed; an error leaves the old roots in use.
    pub(crate) async fn reload(&self) -> Result<bool, ServeError> {
        let pem = read(&self.path).await?;
        if pem == self.roots.read().0 {
            return Ok(false);
        }
        let roots = roots(&self.path, &pem)?;
        *self.roots.write() = (pem, roots);
        Ok(true)
    }

    /// The state of a chain that the peer has shown and proved to own.
    pub(crate) async fn judge(&self, chain: &[CertificateDer<'static>]) -> PeerCertificate {
        let roots = self.roots.read().1.clone();
        let shown = ShownChain::new(chain.to_vec());
        if shown.is_vouched_for_by(&roots).await {
            PeerCertificate::Trusted(shown)
        } else {
            PeerCertificate::Untrusted
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let failed = |why| ServeError::ReadFile { path: path.to_owned(), why };
    tokio::fs::read(path).await.map_err(failed)
}

fn roots(path: &Path, pem: &[u8]) -> Result<ClientRoots, ServeError> {
    let bad = |reason| ServeError::BadClientCa { path: path.to_owned(), reason };
    ClientRoots::from_pem(pem).map_err(bad)
}

#[cfg(test)]
mod tests;
