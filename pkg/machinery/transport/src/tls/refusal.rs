//! Why a server's certificate is refused, in words that say what to do about it. rustls names the
//! check that failed; an operator needs to know which file to mend.

use std::sync::Arc;

use rustls::{CertificateError, Error, OtherError};

use super::fields::Fields;

/// A refused certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "the server's certificate is signed by an authority that is not in the configured CA \
         bundle; add the CA that signed it to {ca}"
    )]
    UnknownIssuer { ca: &'static str },
    #[error(
        "the server's certificate is signed by another authority than the one of that name in the \
         configured CA bundle; if the cluster was set up anew, add its new CA to {ca}"
    )]
    NamesakeIssuer { ca: &'static str },
    #[error(
        "the server's certificate is that of an authority (CA:TRUE) and not in the configured CA \
         bundle; add it to {ca}, or give the server one with CA:FALSE"
    )]
    AuthorityAsServer { ca: &'static str },
    #[error("the server's certificate has expired; renew it on the server")]
    Expired,
    #[error("the server's certificate is not valid yet; compare the clocks of both machines")]
    NotValidYet,
    #[error(
        "the server's certificate has no subject alternative name, and its common name does not \
         count; give the server one that names {expected:?}"
    )]
    Nameless { expected: String },
    #[error(
        "the server's certificate is for {presented} and not for {expected:?}; use one of these \
         names as the server{cure}"
    )]
    OtherName { expected: String, presented: String, cure: &'static str },
    #[error(
        "the server's certificate is signed with a key or hash that is not supported (RSA below \
         2048 bits, P-521, SHA-1); give the server one with RSA of 2048 bits, P-256, P-384 or \
         Ed25519"
    )]
    Unsupported,
    #[error(
        "the server's certificate may not be used for servers; give it the extended key usage \
         serverAuth"
    )]
    Purpose,
}

impl Refusal {
    /// Puts `error` into such words, where there are any better than its own.
    pub(super) fn explain(error: Error, fields: Fields) -> Error {
        let Error::InvalidCertificate(cause) = &error else { return error };
        match Self::of(cause, fields) {
            // Only this kind of error shows the words of what it carries.
            Some(refusal) => Error::Other(OtherError(Arc::new(refusal))),
            None => error,
        }
    }

    fn of(cause: &CertificateError, fields: Fields) -> Option<Self> {
        let Fields { ca, other_name: cure } = fields;
        Some(match cause {
            CertificateError::UnknownIssuer => Self::UnknownIssuer { ca },
            CertificateError::BadSignature => Self::NamesakeIssuer { ca },
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotValidYet
            }
            CertificateError::NotValidForNameContext { expected, presented } => {
                let expected = expected.to_str().into_owned();
                if presented.is_empty() {
                    Self::Nameless { expected }
                } else {
                    let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
                    Self::OtherName { expected, presented: names.join(", "), cure }
                }
            }
            CertificateError::UnsupportedSignatureAlgorithmContext { .. }
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
                Self::Unsupported
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                Self::Purpose
            }
            CertificateError::Other(OtherError(cause)) => match cause.downcast_ref()? {
                webpki::Error::CaUsedAsEndEntity => Self::AuthorityAsServer { ca },
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// webpki writes `DnsName("api.example")`.
fn bare(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}
