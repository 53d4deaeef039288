//! Certificate chains of strangers: bounded before they are read, and judged at a bounded cost
//! (`rule:chains-are-bounded`). Both sides use it: `serving` for the certificates of clients,
//! `transport` for those of servers. This file has the bounds, the one path that is verified, the
//! [`Terms`] of a judgement and [`Refused`]: why a chain is not good.
//!
//! | file | holds |
//! |---|---|
//! | `authorities.rs` | [`Authorities`]: certificates that are trusted, and what they vouch for |
//! | `relaxed.rs` | a certificate in a form that webpki reads |

mod authorities;
mod relaxed;

use std::sync::atomic::{AtomicUsize, Ordering};

use rustls_pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm, UnixTime,
};

use crate::certificates::relaxed::{RelaxedCertificate, names};

pub use authorities::{Authorities, Good, Validity, validity};
pub use relaxed::readable;

/// Certificates of a chain, its leaf included.
pub const MOST_CERTIFICATES: usize = 10;
/// Bytes of all certificates of a chain.
pub const MOST_BYTES: usize = 16 * 1024;
/// Signatures that one judgement checks: those of a path of four, and room for authorities of the
/// same name, when only the key tells which one signed. The slowest kinds, P-384 and RSA with
/// 8192 bits, take a millisecond at most.
pub(crate) const MOST_SIGNATURES: usize = 8;

/// The purpose of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For a client of ours to trust it.
    Server,
    /// For a server of ours to trust it.
    Client,
}

/// The terms that a chain is verified by.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The purpose of the leaf.
    pub purpose: Purpose,
    /// The time of the judgement.
    pub now: UnixTime,
    /// Whether dates do not count, neither those of the chain nor those of the authorities.
    pub any_date: bool,
    /// The algorithms for signatures.
    pub algorithms: &'a [&'static dyn SignatureVerificationAlgorithm],
}

/// Why a chain is not good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many certificates or bytes.
    #[error(
        "the chain has more than {MOST_CERTIFICATES} certificates or 16 KiB; send the certificate \
         and the CAs between it and the root only"
    )]
    TooLong,
    /// Two certificates of one subject on the path.
    #[error(
        "the chain has two CAs of the same subject; send only the one that the configured CA signed"
    )]
    Branches,
    /// More signatures than a judgement may cost.
    #[error(
        "verifying the chain takes more than {MOST_SIGNATURES} signatures; remove CAs of the \
         same subject from the CA bundle"
    )]
    TooCostly,
    /// The authority that signed it, or one on the way, may not.
    #[error("{0}")]
    Authority(AuthorityFault),
    /// The error of webpki.
    #[error("{0}")]
    Webpki(webpki::Error),
}

/// Why an authority on the path may not vouch for the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityFault {
    /// The dates of a CA that is trusted.
    #[error("the CA that signed it has expired; renew the CA")]
    Expired,
    /// The dates of a CA that is trusted.
    #[error("the CA that signed it is not valid yet; compare the clocks of both machines")]
    NotValidYet,
    /// Basic constraints of a CA that is trusted.
    #[error("there are more CAs between it and the trusted CA than that one allows (pathlen)")]
    PathLength,
    /// Extended key usages of a CA that is trusted.
    #[error("the extended key usage of the trusted CA does not include this purpose")]
    Purpose,
    /// Key usage of a CA between the leaf and the one that is trusted.
    #[error("the key usage of a CA in the chain does not include keyCertSign")]
    MayNotSign,
}

impl Refused {
    /// Whether it is about the issuer alone. webpki judges the dates and the extended key usage of
    /// the certificate before its issuer, except those of an authority (CA:TRUE), if it has
    /// looked at the dates only: whoever trusts that very certificate trusts its key to sign
    /// certificates of any usage.
    pub(crate) fn is_about_issuer(&self) -> bool {
        matches!(
            self,
            Self::Webpki(
                webpki::Error::UnknownIssuer
                    | webpki::Error::CaUsedAsEndEntity
                    | webpki::Error::InvalidSignatureForPublicKey
            ) | Self::Authority(_)
                | Self::TooCostly
        )
    }
}

impl From<webpki::Error> for Refused {
    fn from(error: webpki::Error) -> Self {
        Self::Webpki(error)
    }
}

/// Refuses a chain that is too long. Looks at lengths only, never at contents.
///
/// # Errors
/// It has too many certificates or bytes.
pub fn bounded(leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Refused> {
    let bytes = others.iter().fold(leaf.len(), |sum, other| sum.saturating_add(other.len()));
    if others.len() >= MOST_CERTIFICATES || bytes > MOST_BYTES {
        return Err(Refused::TooLong);
    }
    Ok(())
}

/// The certificates that lead from `leaf` upwards, issuer after issuer. What leads nowhere is left
/// out; where two ways lead on, the number of ways could double with each step.
pub(crate) fn path<'c>(
    leaf: &'c CertificateDer<'_>,
    others: &'c [CertificateDer<'_>],
) -> Result<Vec<&'c CertificateDer<'c>>, Refused> {
    let mut path: Vec<&CertificateDer<'_>> = Vec::new();
    let mut next = names(leaf).map(|names| names.issuer);
    while let Some(issuer) = next {
        let signs = |other: &&CertificateDer<'_>| {
            names(other).is_some_and(|names| names.subject == issuer) && !path.contains(other)
        };
        let mut candidates = others.iter().filter(signs);
        let Some(found) = candidates.next() else { break };
        // The same certificate sent twice is one way.
        if candidates.any(|other| other != found) {
            return Err(Refused::Branches);
        }
        let of_found = names(found).filter(|names| names.issuer != names.subject);
        next = of_found.map(|names| names.issuer);
        path.push(found);
    }
    Ok(path)
}

/// How many signatures were asked for, in one judgement.
#[derive(Debug, Default)]
pub(crate) struct Budget(AtomicUsize);

impl Budget {
    fn take(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) < MOST_SIGNATURES
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.asked() > MOST_SIGNATURES
    }

    pub(crate) fn asked(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// An algorithm that checks signatures of relaxed certificates over their originals, and none that
/// is beyond the budget.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) algorithm: &'a dyn SignatureVerificationAlgorithm,
    pub(crate) relaxed: &'a [RelaxedCertificate],
    pub(crate) budget: &'a Budget,
}

impl SignatureVerificationAlgorithm for Counted<'_> {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        if !self.budget.take() {
            return Err(InvalidSignature);
        }
        let original = self.relaxed.iter().find_map(|relaxed| relaxed.original_of(message));
        self.algorithm.verify_signature(public_key, original.unwrap_or(message), signature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.algorithm.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.algorithm.signature_alg_id()
    }
}

#[cfg(test)]
mod tests;
