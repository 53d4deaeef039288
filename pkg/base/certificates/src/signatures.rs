//! Signatures checked, as many as a judgement may cost, each over what was signed.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustls_pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm};

use crate::bounds::MOST_SIGNATURES;
use crate::restated::Restated;

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
