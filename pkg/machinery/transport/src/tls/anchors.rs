//! Trust anchors out of a bundle.

use rustls::RootCertStore;

use super::error::TlsError;

/// The anchors among `bundle`; as Go does, what cannot be one is left out.
pub(super) fn anchors(
    bundle: &[rustls::pki_types::CertificateDer<'static>],
) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let mut first_error = None;
    for der in bundle {
        if let Err(error) = roots.add(der.clone()) {
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        _ if !roots.is_empty() => Ok(roots),
        Some(error) => Err(TlsError::Authority(error)),
        None => Err(TlsError::NoSystemTrust),
    }
}
