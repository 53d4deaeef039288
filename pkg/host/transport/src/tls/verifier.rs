//! Verifies the certificate of a server. As webpki judges, with the exceptions that Go makes as well: a
//! certificate that is itself in the configured bundle is good, and one of version 1 is read. Checks that were waived are left out, and no other
//! (`rule:a-waiver-leaves-the-other-checks`).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use webpki::EndEntityCert;

use crate::certificates::{Authorities, Purpose, Refused, Terms, readable};
use crate::tls::material::{Fields, TlsError, Waived};

/// Judges the certificates of servers.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    judge: Judge,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The servers that a verifier trusts.
#[derive(Debug)]
pub(super) enum Judge {
    /// Whoever has the key of the certificate: `insecure-skip-tls-verify`.
    Anybody,
    /// No server: nothing was configured, and the system has no authorities. An error of the
    /// connection, since a server without TLS needs no trust. With the field that is missing.
    NoTrust(&'static str),
    /// Servers that a bundle vouches for or holds.
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
            Judge::NoTrust(field) => {
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

/// Certificates that are trusted, as authorities or as themselves.
#[derive(Debug)]
pub(super) struct Bundle {
    authorities: Authorities,
    waived: Waived,
    fields: Fields,
}

impl Bundle {
    /// Leaves out certificates that cannot be read, as Go does, unless nothing is left.
    pub(super) fn new(
        bundle: &[CertificateDer<'static>],
        waived: Waived,
        fields: Fields,
    ) -> Result<Self, TlsError> {
        let authorities = Authorities::new(bundle.to_vec());
        if authorities.certificates().is_empty() {
            return Err(match authorities.unreadable() {
                Some(error) => TlsError::Authority(error.clone()),
                None => TlsError::NoSystemTrust(fields.ca),
            });
        }
        Ok(Self { authorities, waived, fields })
    }

    /// Whether the certificate, with the other certificates of the server, may speak for `name`.
    pub(super) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
        algorithms: &[&'static dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Error> {
        let (purpose, any_date) = (Purpose::Server, self.waived.dates);
        let terms = Terms { purpose, now, any_date, algorithms };
        let judged = self.authorities.judge(end_entity, intermediates, &terms);
        let named = |_| if self.waived.name { Ok(()) } else { is_for(end_entity, name) };
        judged.and_then(named).map_err(|refused| Refusal::explain(refused, self.fields))
    }
}

fn is_for(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Refused> {
    let certificate = readable(certificate);
    let certificate = EndEntityCert::try_from(&*certificate)?;
    Ok(certificate.verify_is_valid_for_subject_name(name)?)
}

/// Names of a certificate that a message tells.
const NAMES_TOLD: usize = 10;

/// A refused certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "the server's certificate is signed by a CA that is not in the configured CA bundle; add \
         the CA that signed it to {ca}"
    )]
    UnknownIssuer { ca: &'static str },
    #[error(
        "the server's certificate is signed by another authority than the CA of the same name in \
         the configured CA bundle; if the CA of the cluster was replaced, add the new CA to {ca}"
    )]
    NamesakeIssuer { ca: &'static str },
    #[error(
        "the server's certificate is a CA certificate (CA:TRUE) and not in the configured CA \
         bundle; add it to {ca}, or use a server certificate with CA:FALSE"
    )]
    AuthorityAsServer { ca: &'static str },
    #[error("the server's certificate has expired; renew it on the server")]
    Expired,
    #[error("the server's certificate is not valid yet; compare the clocks of both machines")]
    NotValidYet,
    #[error(
        "the server's certificate has no subject alternative name, and the common name is not \
         used; use a server certificate for {expected:?}"
    )]
    Nameless { expected: String },
    #[error(
        "the server's certificate is for {presented} and not for {expected:?}; use one of these \
         names as the server{cure}"
    )]
    OtherName { expected: String, presented: String, cure: &'static str },
    #[error(
        "the server's certificate is signed with a key or hash that is not supported (RSA below \
         2048 bits, P-521, SHA-1); use a server certificate with RSA of 2048 bits, P-256, P-384 \
         or Ed25519"
    )]
    Unsupported,
    #[error(
        "the server's certificate is not issued for servers; use a server certificate with the \
         extended key usage serverAuth"
    )]
    Purpose,
    #[error("the server's certificate is not trusted: {refused} (CA bundle: {ca})")]
    Chain { refused: Refused, ca: &'static str },
}

impl Refusal {
    /// Puts `refused` into such words, where there are any better than its own.
    pub(super) fn explain(refused: Refused, fields: Fields) -> Error {
        match Self::of(refused, fields) {
            // Only this kind of error shows the words of what it carries.
            Ok(refusal) => Error::Other(OtherError(Arc::new(refusal))),
            Err(error) => {
                Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
            }
        }
    }

    fn of(refused: Refused, fields: Fields) -> Result<Self, webpki::Error> {
        let Fields { ca, other_name: cure } = fields;
        let cause = match refused {
            Refused::Webpki(cause) => cause,
            refused => return Ok(Self::Chain { refused, ca }),
        };
        Ok(match cause {
            webpki::Error::UnknownIssuer => Self::UnknownIssuer { ca },
            webpki::Error::InvalidSignatureForPublicKey => Self::NamesakeIssuer { ca },
            webpki::Error::CertExpired { .. } => Self::Expired,
            webpki::Error::CertNotValidYet { .. } => Self::NotValidYet,
            webpki::Error::CertNotValidForName(names) => {
                let expected = names.expected.to_str().into_owned();
                match names.presented.len() {
                    0 => Self::Nameless { expected },
                    _ => Self::OtherName { expected, presented: some_of(&names.presented), cure },
                }
            }
            webpki::Error::UnsupportedSignatureAlgorithmContext(_)
            | webpki::Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => {
                Self::Unsupported
            }
            webpki::Error::RequiredEkuNotFoundContext(_) => Self::Purpose,
            webpki::Error::CaUsedAsEndEntity => Self::AuthorityAsServer { ca },
            other => return Err(other),
        })
    }
}

/// The first names of a certificate, which may have thousands.
fn some_of(names: &[String]) -> String {
    let bare = names.iter().take(NAMES_TOLD).map(|name| bare(name));
    let told = bare.collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_TOLD) {
        None | Some(0) => told,
        Some(more) => format!("{told} and {more} more"),
    }
}

/// webpki writes `DnsName("api.example")`.
fn bare(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}
