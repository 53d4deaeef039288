//! Who may call itself the server. As webpki judges, with the exceptions that Go makes as well: a
//! certificate that is itself in the configured bundle is good
//! (`rule:a-certificate-in-the-bundle-is-trusted`), and one of version 1 is read
//! (`rule:version-1-is-read`). Checks that were waived are left out, and no other
//! (`rule:a-waiver-leaves-the-other-checks`).

use std::sync::Arc;

use crate::certificates::readable;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, OtherError, SignatureScheme};

use super::bundle::Bundle;
use super::error::TlsError;

/// Judges the certificates of servers.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    judge: Judge,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Whom a verifier trusts.
#[derive(Debug)]
pub(super) enum Judge {
    /// Whoever has the key of the certificate: `insecure-skip-tls-verify`.
    Anybody,
    /// Nobody: nothing was configured, and the system has no authorities. An error of the
    /// connection, since a server without TLS needs no trust. With the field that is missing.
    Nobody(&'static str),
    /// What a bundle vouches for or holds.
    Bundle(Bundle),
}

impl ServerVerifier {
    pub(super) fn new(judge: Judge, provider: &CryptoProvider) -> Self {
        Self { judge, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.judge {
            Judge::Anybody => Ok(()),
            Judge::Nobody(field) => {
                Err(Error::Other(OtherError(Arc::new(TlsError::NoSystemTrust(field)))))
            }
            Judge::Bundle(bundle) => {
                bundle.judge(end_entity, intermediates, server_name, now, self.algorithms.all)
            }
        }
        .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, &readable(cert), dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, &readable(cert), dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
