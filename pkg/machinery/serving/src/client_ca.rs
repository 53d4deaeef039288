//! Judges the certificates of clients.
//!
//! A listener with a client CA asks for a certificate and takes any in the handshake, so that a bad
//! one gets an answer in HTTP, which says more than a TLS alert (rule:bad-credentials-are-refused).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use tracing::debug;

use crate::ServeError;
use crate::peer::PeerCertificate;
use crate::pem_problem::pem_problem;

/// The certificates of a PEM file, each trusted as a root for clients.
#[derive(Debug)]
pub(crate) struct ClientCa {
    path: PathBuf,
    pem: RwLock<Vec<u8>>,
    verifier: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl ClientCa {
    pub(crate) async fn load(path: &Path) -> Result<Arc<Self>, ServeError> {
        let pem = read(path).await?;
        let verifier = RwLock::new(verifier(path, &pem)?);
        Ok(Arc::new(Self { path: path.to_owned(), pem: RwLock::new(pem), verifier }))
    }

    /// Reads the file again. Says whether it changed; an error leaves the old roots in use.
    pub(crate) async fn reload(&self) -> Result<bool, ServeError> {
        let pem = read(&self.path).await?;
        if pem == *self.pem.read() {
            return Ok(false);
        }
        let verifier = verifier(&self.path, &pem)?;
        *self.verifier.write() = verifier;
        *self.pem.write() = pem;
        Ok(true)
    }

    /// What to think of a chain that the peer has shown and proved to own.
    pub(crate) fn judge(&self, chain: &[CertificateDer<'static>]) -> PeerCertificate {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return PeerCertificate::Absent;
        };
        let verifier = self.verifier.read().clone();
        match verifier.verify_client_cert(leaf, intermediates, UnixTime::now()) {
            Ok(_) => PeerCertificate::Trusted(chain.to_vec()),
            Err(err) => {
                debug!(v = 3, logger = "serving", %err, "Client certificate is not trusted");
                PeerCertificate::Untrusted
            }
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let failed = |source| ServeError::ReadFile { path: path.to_owned(), source };
    tokio::fs::read(path).await.map_err(failed)
}

fn verifier(path: &Path, pem: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, ServeError> {
    let bad = |reason: String| ServeError::BadClientCa { path: path.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| bad(pem_problem(&error).to_owned()))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| bad(error.to_string()))
}

impl ClientCertVerifier for ClientCa {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None, so that a client sends the certificate that it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.read().verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.read().verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.read().supported_verify_schemes()
    }
}
