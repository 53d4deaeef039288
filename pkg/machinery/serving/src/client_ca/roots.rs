//! [`ClientRoots`]: CAs that vouch for clients.

use std::sync::Arc;

use pem_problem::PemProblem;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error, RootCertStore};

/// CAs, each trusted as a root for clients. Clones share them.
#[derive(Clone, Debug)]
pub struct ClientRoots(Arc<dyn ClientCertVerifier>);

impl ClientRoots {
    /// Takes every certificate of a PEM text for a root.
    ///
    /// # Errors
    /// Says in lower case what is wrong with the text, and no word of it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| PemProblem::from(error).to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(ring::default_provider());
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Whether a chain, leaf first, leads to one of these, is valid now, and is for clients.
    ///
    /// # Errors
    /// Why it is not to be trusted.
    pub fn vouch_for(&self, chain: &[CertificateDer<'_>]) -> Result<(), Error> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err(Error::InvalidCertificate(CertificateError::BadEncoding));
        };
        self.0.verify_client_cert(leaf, intermediates, UnixTime::now()).map(|_| ())
    }
}
