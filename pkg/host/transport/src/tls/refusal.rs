//! Why a server's certificate is refused, in words that say what to do about it. rustls names the
//! check that failed; an operator needs to know which file to mend.

use std::sync::Arc;

use crate::certificates::Refused;
use rustls::{CertificateError, Error, OtherError};

use super::fields::Fields;

/// Names of a certificate that a message tells.
const NAMES_TOLD: usize = 10;

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
