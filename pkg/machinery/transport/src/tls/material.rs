//! What a TLS configuration is made of, read from PEM: what is trusted, and who we are.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;

/// Which servers are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those that an authority of the system vouches for.
    System,
    /// Those that an authority of this bundle vouches for, and no other.
    Bundle(Arc<[CertificateDer<'static>]>),
    /// All of them: `insecure-skip-tls-verify`.
    Nothing,
}

impl Trust {
    /// The bundle of all certificates in `pem`.
    ///
    /// # Errors
    /// There is not one, or one cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TlsError> {
        certificates(pem).map(|chain| Self::Bundle(chain.into()))
    }

    pub(super) fn bundle(&self) -> &[CertificateDer<'static>] {
        match self {
            Self::Bundle(bundle) => bundle,
            Self::System | Self::Nothing => &[],
        }
    }

    pub(super) fn tag(&self) -> u8 {
        match self {
            Self::System => 0,
            Self::Bundle(_) => 1,
            Self::Nothing => 2,
        }
    }
}

/// A certificate with its chain and private key. Clones share it.
#[derive(Clone)]
pub struct ClientCertificate(Arc<Pair>);

impl PartialEq for ClientCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.0.chain == other.0.chain && self.0.key == other.0.key
    }
}

struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientCertificate {
    /// Reads the chain and the key. That they belong together is found when they are first used,
    /// see [`TlsConfigs::get`](crate::TlsConfigs::get).
    ///
    /// # Errors
    /// One of them is missing or cannot be read.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound => TlsError::NoKey,
            other => TlsError::Pem(other.into()),
        })?;
        Ok(Self(Arc::new(Pair { chain, key })))
    }

    pub(super) fn chain(&self) -> &[CertificateDer<'static>] {
        &self.0.chain
    }

    pub(super) fn key(&self) -> &PrivateKeyDer<'static> {
        &self.0.key
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.chain.iter().map(|der| &**der).chain([self.0.key.secret_der()])
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCertificate({} certificates)", self.0.chain.len())
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| TlsError::Pem(error.into()))?;
    if chain.is_empty() { Err(TlsError::NoCertificate) } else { Ok(chain) }
}
