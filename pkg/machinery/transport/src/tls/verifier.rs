//! Who may call itself the server. As webpki judges, with one exception that Go makes as well: a
//! certificate that is itself in the configured bundle is good
//! (`rule:a-certificate-in-the-bundle-is-trusted`).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::anchors::anchors;
use super::error::TlsError;
use super::refusal::Refusal;

/// Trusts what a bundle vouches for or holds.
#[derive(Debug)]
pub(super) struct BundleVerifier {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
    bundle: Vec<CertificateDer<'static>>,
}

impl BundleVerifier {
    pub(super) fn new(
        bundle: &[CertificateDer<'static>],
        provider: &CryptoProvider,
    ) -> Result<Self, TlsError> {
        let algorithms = provider.signature_verification_algorithms;
        Ok(Self { roots: anchors(bundle)?, algorithms, bundle: bundle.to_vec() })
    }

    /// Whether `error` is about the issuer alone. webpki judges the validity of the certificate
    /// before either of the two, so the dates are good. Of an authority (CA:TRUE) it has not looked
    /// at the extended key usage then. That is harmless: the operator trusts this very certificate,
    /// whose key could sign a server's certificate with any usage.
    fn is_about_issuer(error: &Error) -> bool {
        match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
            Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
                matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
            }
            _ => false,
        }
    }
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity).map_err(Refusal::explain)?;
        let signed = verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        );
        let known = || self.bundle.iter().any(|known| known == end_entity);
        match signed {
            Err(error) if !(Self::is_about_issuer(&error) && known()) => Err(error),
            _ => verify_server_name(&certificate, server_name),
        }
        .map(|()| ServerCertVerified::assertion())
        .map_err(Refusal::explain)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Judges without looking at the certificate shown.
#[derive(Debug)]
pub(super) struct FixedVerdict {
    verdict: Result<(), TlsError>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl FixedVerdict {
    /// Trusts whoever has the key of the certificate: `insecure-skip-tls-verify`.
    pub(super) fn trust(provider: &CryptoProvider) -> Self {
        Self { verdict: Ok(()), algorithms: provider.signature_verification_algorithms }
    }

    /// Trusts nobody: nothing was configured, and the system has no authorities. An error of the
    /// connection, since a server without TLS needs no trust.
    pub(super) fn refuse(provider: &CryptoProvider) -> Self {
        Self { verdict: Err(TlsError::NoSystemTrust), ..Self::trust(provider) }
    }
}

impl ServerCertVerifier for FixedVerdict {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.verdict {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(error) => Err(Error::Other(OtherError(Arc::new(error.clone())))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
