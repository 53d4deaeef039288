//! Trust anchors out of a bundle.

use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use super::error::TlsError;
use super::fields::Fields;
use super::restated::Restated;

/// The anchors among `bundle`; as Go does, what cannot be one is left out. There may be none: a
/// bundle of nothing but servers' own certificates vouches for those alone.
pub(super) fn anchors(
    bundle: &[CertificateDer<'static>],
    fields: Fields,
) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let mut usable = false;
    let mut first_error = None;
    for der in bundle {
        if !may_sign(der) {
            usable = true;
        } else if let Err(error) = roots.add(readable(der)) {
            first_error.get_or_insert(error);
        } else {
            usable = true;
        }
    }
    match first_error {
        _ if usable => Ok(roots),
        Some(error) => Err(TlsError::Authority(error)),
        None => Err(TlsError::NoSystemTrust(fields.ca)),
    }
}

/// In a form that webpki reads. Of versions 1 and 2 it knows only the commonest spelling itself.
fn readable(der: &CertificateDer<'static>) -> CertificateDer<'static> {
    Restated::as_version_3(der).map_or_else(|| der.clone(), |restated| restated.der().clone())
}

/// Whether a certificate may sign others. webpki looks at no extension of an anchor, so it is asked
/// to take the certificate as that of a server, which it refuses for an authority. What it cannot
/// read as one (version 1 has no extensions) is left to the store to judge.
fn may_sign(der: &CertificateDer<'_>) -> bool {
    let Ok(certificate) = EndEntityCert::try_from(der) else { return true };
    let judge = |now| {
        certificate.verify_for_usage(&[], &[], &[], now, KeyUsage::server_auth(), None, None).err()
    };
    let mut verdict = judge(UnixTime::since_unix_epoch(Duration::ZERO));
    // The dates are judged first, and do not matter here.
    if let Some(webpki::Error::CertNotValidYet { not_before, .. }) = verdict {
        verdict = judge(not_before);
    }
    matches!(verdict, Some(webpki::Error::CaUsedAsEndEntity))
}
