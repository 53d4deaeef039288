//! How much of a chain is read, and the one path through it (rule:chains-are-bounded).

use rustls_pki_types::CertificateDer;

use crate::bounds::{MOST_BYTES, MOST_CERTIFICATES};
use crate::der::names;
use crate::refused::Refused;

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
