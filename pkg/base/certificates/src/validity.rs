//! Until when a certificate is valid, for whoever warns before it ends.

use std::time::Duration;

use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

use crate::restated::readable;

/// From when to when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from: u64,
    /// The last second.
    pub to: u64,
}

/// The validity of `certificate`. None if it cannot be read.
pub fn validity(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let certificate = readable(certificate);
    let certificate = EndEntityCert::try_from(&*certificate).ok()?;
    // webpki tells the dates only where they are wrong.
    let judge = |seconds| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        certificate.verify_for_usage(&[], &[], &[], time, KeyUsage::server_auth(), None, None).err()
    };
    let Some(Error::CertExpired { not_after, .. }) = judge(u64::MAX) else { return None };
    let from = match judge(0) {
        Some(Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
        _ => 0,
    };
    Some(Validity { from, to: not_after.as_secs() })
}
