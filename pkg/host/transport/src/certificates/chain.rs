//! What a chain costs at most (`rule:chains-are-bounded`): how much of it is read, the one path
//! through it, and how many signatures are checked.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustls_pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm,
};

use crate::certificates::der::names;
use crate::certificates::judgement::{MOST_BYTES, MOST_CERTIFICATES, MOST_SIGNATURES, Refused};
use crate::certificates::restated::Restated;

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

/// An algorithm that checks signatures of restated certificates over their originals, and none that
/// is beyond the budget.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) algorithm: &'a dyn SignatureVerificationAlgorithm,
    pub(crate) restated: &'a [Restated],
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
        let original = self.restated.iter().find_map(|restated| restated.original_of(message));
        self.algorithm.verify_signature(public_key, original.unwrap_or(message), signature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.algorithm.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.algorithm.signature_alg_id()
    }
}
