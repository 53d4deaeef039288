//! Material of a TLS configuration, read from PEM: [`Trust`] in servers, and our [`ClientCertificate`].

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroize as _;

use crate::certificates::{Validity, validity};
use crate::error::PemProblem;

/// The servers that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    pub(super) whom: Whom,
    pub(super) waived: Waived,
    pub(super) fields: Fields,
}

/// The authorities that vouch for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    System,
    Bundle(Arc<[CertificateDer<'static>]>),
    Anybody,
}

/// Checks of a server's certificate that are left out, while all others stay
/// (`rule:a-waiver-leaves-the-other-checks`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waived {
    /// The certificate need not name the host.
    pub name: bool,
    /// The certificates below the authority need not be valid at this time.
    pub dates: bool,
}

impl Trust {
    /// Servers that an authority of the system vouches for.
    pub fn system() -> Self {
        Self::of(Whom::System)
    }

    /// Every server is trusted: `insecure-skip-tls-verify`.
    pub fn anybody() -> Self {
        Self::of(Whom::Anybody)
    }

    /// Servers that an authority of this bundle vouches for, and no other: all certificates in `pem`.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TlsError> {
        Ok(Self::of(Whom::Bundle(certificates(pem)?.into())))
    }

    fn of(whom: Whom) -> Self {
        Self { whom, waived: Waived::default(), fields: Fields::default() }
    }

    /// This trust with refusals that name these fields.
    #[must_use]
    pub fn speaking_of(self, fields: Fields) -> Self {
        Self { fields, ..self }
    }

    /// This trust without the checks that are `waived`.
    #[must_use]
    pub fn waiving(self, waived: Waived) -> Self {
        Self { waived, ..self }
    }

    /// The content, for a hash.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let (kind, bundle): (&[u8], &[CertificateDer<'_>]) = match &self.whom {
            Whom::System => (b"system", &[]),
            Whom::Bundle(bundle) => (b"bundle", bundle),
            Whom::Anybody => (b"anybody", &[]),
        };
        let name: &[u8] = if self.waived.name { b"any name" } else { b"" };
        let dates: &[u8] = if self.waived.dates { b"any date" } else { b"" };
        let Fields { ca, other_name } = self.fields;
        let words = [ca.as_bytes(), other_name.as_bytes()];
        [kind, name, dates].into_iter().chain(words).chain(bundle.iter().map(|der| &**der))
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

/// Best effort: copies inside the TLS library are beyond reach.
impl Drop for Pair {
    fn drop(&mut self) {
        self.key.zeroize();
    }
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

    /// When it is valid; none if it cannot be read.
    pub fn validity(&self) -> Option<Validity> {
        validity(self.0.chain.first()?)
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

/// The fields of whoever configured the trust, as a refusal speaks of them: those of a kubeconfig
/// by default. A member cluster is configured in an object, whose user has never seen a kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Where CA certificates stand.
    pub ca: &'static str,
    /// The remedy for a certificate with another name, after "use one of these names as the
    /// server"; empty when nothing else helps.
    pub other_name: &'static str,
}

impl Default for Fields {
    fn default() -> Self {
        Self { ca: "certificate-authority", other_name: ", or set tls-server-name to one" }
    }
}

/// Certificates or keys that cannot be used. Never quotes a key.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TlsError {
    /// A text without any section of PEM.
    #[error("it holds no certificate in PEM")]
    NoCertificate,
    /// A certificate or key that cannot be read.
    #[error("it is not PEM: {0}")]
    Pem(PemProblem),
    /// None of the CA certificates can be used.
    #[error("none of its certificates can be used as a CA: {0}")]
    Authority(#[source] webpki::Error),
    /// A client certificate without its private key.
    #[error("it holds no private key in PEM (PKCS#8, PKCS#1 or SEC1)")]
    NoKey,
    /// Certificate and key are not a pair, or of a kind that is not supported.
    #[error("the client certificate and its key cannot be used together: {0}")]
    Pair(#[source] rustls::Error),
    /// The system has no CA certificates, and no bundle was given.
    #[error("the system has no CA certificates; configure a CA bundle ({0})")]
    NoSystemTrust(&'static str),
    /// The cryptography offers no TLS version. Cannot happen with the one that is built in.
    #[error("cannot set up TLS: {0}")]
    Setup(#[source] rustls::Error),
}
