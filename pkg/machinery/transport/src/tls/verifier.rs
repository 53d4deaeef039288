//! Who may call itself the server. As webpki judges, with one exception that Go makes as well: a
//! certificate that is itself in the configured bundle is good
//! (`rule:a-certificate-in-the-bundle-is-trusted`).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use super::anchors::anchors;
use super::error::TlsError;
use super::refusal::Refusal;

/// Trusts what a bundle vouches for or holds.
#[derive(Debug)]
pub(super) struct BundleVerifier {
    webpki: Arc<WebPkiServerVerifier>,
    bundle: Vec<CertificateDer<'static>>,
}

impl BundleVerifier {
    pub(super) fn new(
        bundle: &[CertificateDer<'static>],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let roots = Arc::new(anchors(bundle)?);
        let webpki = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
            .build()
            .map_err(|error| TlsError::Setup(Error::General(error.to_string())))?;
        Ok(Self { webpki, bundle: bundle.to_vec() })
    }

    /// Whether `error` is about the issuer alone. webpki judges the validity of the certificate
    /// before either of the two, so the dates are good.
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
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let error = match verdict {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        if Self::is_about_issuer(&error) && self.bundle.iter().any(|known| known == end_entity) {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            return verify_server_name(&certificate, server_name)
                .map(|()| ServerCertVerified::assertion())
                .map_err(Refusal::explain);
        }
        Err(Refusal::explain(error))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
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
