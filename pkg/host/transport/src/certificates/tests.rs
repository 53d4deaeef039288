//! The worst cost of chains, and the authorities that may sign.

mod cost;
mod limits;
mod measure;

use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::certificates::{Budget, MOST_SIGNATURES, *};

type Signer = CertifiedIssuer<'static, KeyPair>;

/// A CA of this name, whose key is its own.
fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2040, 1, 1);
    params
}

fn as_ca(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn root(params: CertificateParams) -> Signer {
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn intermediate(params: CertificateParams, by: &Signer) -> Signer {
    CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), by).unwrap()
}

fn leaf(by: &Signer) -> CertificateDer<'static> {
    signed(params("leaf"), by)
}

fn signed(params: CertificateParams, by: &Signer) -> CertificateDer<'static> {
    params.signed_by(&KeyPair::generate().unwrap(), by).unwrap().der().clone()
}

fn trusting(roots: &[&Signer]) -> Authorities {
    Authorities::new(roots.iter().map(|root| root.der().clone()).collect())
}

fn terms() -> Terms<'static> {
    // 2026.
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_780_000_000));
    let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms.all;
    Terms { purpose: Purpose::Client, now, any_date: false, algorithms }
}

/// The verdict, and how many signatures it cost.
fn judge(
    authorities: &Authorities,
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
) -> (Result<Good, Refused>, usize) {
    let budget = Budget::default();
    (authorities.judge_within(leaf, others, &terms(), &budget), budget.asked())
}
