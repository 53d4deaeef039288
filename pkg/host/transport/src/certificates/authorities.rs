//! [`Authorities`]: the certificates of a bundle that may sign others, and the verification of a chain
//! against them.

use std::cell::Cell;
use std::time::Duration;

use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage, VerifiedPath};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Version;

use crate::certificates::relaxed::{Shown, readable};
use crate::certificates::{
    AuthorityFault, Budget, Counted, Purpose, Refused, Terms, bounded, path,
};

/// Certificates that are trusted: as authorities, and each as itself, as in Go.
#[derive(Debug)]
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    anchors: Vec<TrustAnchor<'static>>,
    /// The limits of the anchors, in their order.
    limits: Vec<Limits>,
    unreadable: Option<Error>,
}

/// A chain that is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Good {
    /// The last second in which all of it is valid, since 1970.
    pub until: u64,
}

impl Authorities {
    /// Trusts all of `bundle` that can be read.
    pub fn new(bundle: Vec<CertificateDer<'static>>) -> Self {
        let (mut anchors, mut limits, mut unreadable) = (Vec::new(), Vec::new(), None);
        let mut certificates = Vec::new();
        for certificate in bundle {
            match anchor(&certificate) {
                Ok(found) => {
                    let (anchor, limit) = found.unzip();
                    anchors.extend(anchor);
                    limits.extend(limit);
                    certificates.push(certificate);
                }
                Err(error) => {
                    unreadable.get_or_insert(error);
                }
            }
        }
        Self { certificates, anchors, limits, unreadable }
    }

    /// The certificates that can be read.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// The fault of the first certificate that cannot be read.
    pub fn unreadable(&self) -> Option<&Error> {
        self.unreadable.as_ref()
    }

    /// Whether `leaf`, with the other certificates that were sent, is good. The cost is bounded whatever was sent
    /// (`rule:chains-are-bounded`).
    pub fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        terms: &Terms<'_>,
    ) -> Result<Good, Refused> {
        self.judge_within(leaf, others, terms, &Budget::default())
    }

    pub(crate) fn judge_within(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        terms: &Terms<'_>,
        budget: &Budget,
    ) -> Result<Good, Refused> {
        bounded(leaf, others)?;
        let is_known = self.certificates.iter().any(|known| known == leaf);
        let path = if is_known { Vec::new() } else { path(leaf, others)? };
        match self.verify(&Shown::new(leaf, &path, terms.any_date), terms, budget) {
            Err(refused) if is_known && refused.is_about_issuer() => {
                Ok(Good { until: end_of(leaf) })
            }
            verdict => verdict,
        }
    }

    fn verify(
        &self,
        shown: &Shown<'_>,
        terms: &Terms<'_>,
        budget: &Budget,
    ) -> Result<Good, Refused> {
        let relaxed = shown.relaxed();
        let counted = |&algorithm| Counted { algorithm, relaxed, budget };
        let counted: Vec<_> = terms.algorithms.iter().map(counted).collect();
        let algorithms: Vec<_> = counted.iter().map(|one| one as _).collect();
        let usage = match terms.purpose {
            Purpose::Server => KeyUsage::server_auth(),
            Purpose::Client => KeyUsage::client_auth(),
        };
        let leaf_der = shown.leaf();
        let leaf = EndEntityCert::try_from(&leaf_der)?;
        let (until, fault) = (Cell::new(0), Cell::new(None));
        let check = |path: &VerifiedPath<'_>| match self.check(path, terms) {
            Ok(end) => {
                until.set(end);
                Ok(())
            }
            Err(found) => {
                fault.set(Some(found));
                Err(Error::UnknownIssuer)
            }
        };
        let others = shown.others();
        let outcome = leaf.verify_for_usage(
            &algorithms,
            &self.anchors,
            &others,
            terms.now,
            usage,
            None,
            Some(&check),
        );
        match (outcome, fault.get()) {
            (Ok(_), _) => Ok(Good { until: until.get().min(end_of(&leaf_der)) }),
            (Err(_), _) if budget.is_exceeded() => Err(Refused::TooCostly),
            (Err(_), Some(fault)) => Err(Refused::Authority(fault)),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// Whether the authorities of a path whose signatures are good may sign as they did; until when.
    fn check(&self, path: &VerifiedPath<'_>, terms: &Terms<'_>) -> Result<u64, AuthorityFault> {
        // By address: a renewed CA has the same name and key and other limits.
        let position = self.anchors.iter().position(|one| std::ptr::eq(one, path.anchor()));
        let limits =
            position.and_then(|at| self.limits.get(at)).ok_or(AuthorityFault::MayNotSign)?;
        let between: Vec<_> = path.intermediate_certificates().map(webpki::Cert::der).collect();
        limits.check(between.len(), terms)?;
        if !between.iter().all(|der| intermediate_may_sign(der)) {
            return Err(AuthorityFault::MayNotSign);
        }
        Ok(between.iter().map(end_of).fold(limits.end(), u64::min))
    }
}

fn end_of(certificate: &CertificateDer<'_>) -> u64 {
    validity(certificate).map_or(0, |validity| validity.to)
}

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

/// The limits that the certificate of an authority sets to its own use: dates, path
/// length, purposes, and whether it may sign certificates. They count as in Go: a CA that ended, or that is
/// limited to the layer below, does not vouch on.
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
