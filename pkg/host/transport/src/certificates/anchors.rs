//! Which certificates of a bundle may sign others, and within which limits. webpki takes every
//! anchor for an authority without limits; Go does not (`rule:anchors-have-limits`).

use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Version;

use crate::certificates::judgement::{AuthorityFault, Purpose, Terms};
use crate::certificates::restated::readable;

/// What the certificate of an authority says of its own use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    from: i64,
    to: i64,
    /// Authorities between this one and a leaf.
    path_length: Option<u32>,
    servers: bool,
    clients: bool,
}

/// The anchor that a certificate is; none for one that may not sign others.
pub(crate) fn anchor(
    der: &CertificateDer<'_>,
) -> Result<Option<(TrustAnchor<'static>, Limits)>, Error> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| Error::BadDer)?;
    if !may_sign(&certificate) {
        return Ok(None);
    }
    let readable = readable(der);
    let anchor = webpki::anchor_from_trusted_cert(&readable)?.to_owned();
    Ok(Some((anchor, Limits::of(&certificate))))
}

/// Whether the certificate may sign others. Versions 1 and 2 have no extensions to say so.
fn may_sign(certificate: &X509Certificate<'_>) -> bool {
    let constraints = certificate.basic_constraints().ok().flatten();
    let is_authority = match constraints {
        Some(constraints) => constraints.value.ca,
        None => certificate.version() != X509Version::V3,
    };
    is_authority && key_may_sign(certificate)
}

fn key_may_sign(certificate: &X509Certificate<'_>) -> bool {
    match certificate.key_usage() {
        Ok(usage) => usage.is_none_or(|usage| usage.value.key_cert_sign()),
        Err(_) => false,
    }
}

/// Whether the key usage of a CA in a chain includes the signing of certificates.
pub(crate) fn intermediate_may_sign(der: &[u8]) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(_, certificate)| key_may_sign(&certificate))
}

impl Limits {
    fn of(certificate: &X509Certificate<'_>) -> Self {
        let constraints = certificate.basic_constraints().ok().flatten();
        let (servers, clients) = match certificate.extended_key_usage() {
            Ok(Some(usage)) => {
                let usage = usage.value;
                (usage.any || usage.server_auth, usage.any || usage.client_auth)
            }
            Ok(None) => (true, true),
            Err(_) => (false, false),
        };
        Self {
            from: certificate.validity().not_before.timestamp(),
            to: certificate.validity().not_after.timestamp(),
            path_length: constraints.and_then(|constraints| constraints.value.path_len_constraint),
            servers,
            clients,
        }
    }

    /// The last second in which the authority is valid.
    pub(crate) fn end(&self) -> u64 {
        u64::try_from(self.to).unwrap_or(0)
    }

    /// Whether it may vouch for a leaf with so many authorities between.
    pub(crate) fn check(&self, between: usize, terms: &Terms<'_>) -> Result<(), AuthorityFault> {
        let now = seconds(terms.now);
        let is_for_purpose = match terms.purpose {
            Purpose::Server => self.servers,
            Purpose::Client => self.clients,
        };
        let is_near = self
            .path_length
            .is_none_or(|most| usize::try_from(most).is_ok_and(|most| between <= most));
        match () {
            () if !terms.any_date && now < self.from => Err(AuthorityFault::NotValidYet),
            () if !terms.any_date && now > self.to => Err(AuthorityFault::Expired),
            () if !is_near => Err(AuthorityFault::PathLength),
            () if !is_for_purpose => Err(AuthorityFault::Purpose),
            () => Ok(()),
        }
    }
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
