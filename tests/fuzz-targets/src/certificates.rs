//! PEM and certificates: any file of a CA, a certificate or a key, and any chain that a peer shows.

use std::time::Duration;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;
use cluster_health::webhook_registration::Authority;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls_pki_types::{CertificateDer, UnixTime};
use serving::{ClientRoots, SuppliedCertificate};
use transport::certificates::{Authorities, Purpose, Terms, bounded, readable, validity};
use transport::{ClientCertificate, Trust};

/// 2027, when the certificates of the seeds are valid.
const NOW: u64 = 1_800_000_000;

pub(crate) fn are_judged(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    match select % 3 {
        0 => are_read(data),
        1 => are_read(wrapped(&parts(data)).as_bytes()),
        _ => is_judged(&parts(data)),
    }
}

/// A file, as each of its readers takes it.
fn are_read(pem: &[u8]) {
    let (trust, pair) = (Trust::from_pem(pem), ClientCertificate::from_pem(pem, pem));
    let _end = pair.as_ref().ok().and_then(ClientCertificate::validity);
    for error in [trust.err(), pair.err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
    }
    let _roots = ClientRoots::from_pem(pem);
    let text = String::from_utf8_lossy(pem);
    let _served = SuppliedCertificate::new(&text, &text);
    let _authority = Authority::read(&text, &text);
}

/// A chain: its first certificate is the leaf, its last one an authority.
fn is_judged(chain: &[CertificateDer<'static>]) {
    let [leaf, others @ ..] = chain else { return };
    let _times = validity(leaf);
    let _form = readable(leaf);
    let is_short = bounded(leaf, others).is_ok();
    let authorities = Authorities::new(others.last().into_iter().cloned().collect());
    let provider = default_provider();
    for (purpose, any_date) in [(Purpose::Server, false), (Purpose::Client, true)] {
        let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
        let algorithms = provider.signature_verification_algorithms.all;
        let judged = authorities.judge(leaf, others, &Terms { purpose, now, any_date, algorithms });
        assert!(is_short || judged.is_err(), "a chain that is too long was judged");
    }
}

/// Certificates, each behind two bytes with its length.
fn parts(mut data: &[u8]) -> Vec<CertificateDer<'static>> {
    let mut parts = Vec::new();
    while let [high, low, rest @ ..] = data {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (part, next) = rest.split_at(length);
        parts.push(CertificateDer::from(part.to_vec()));
        data = next;
    }
    parts
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let with_length = |part: &&[u8]| {
        let length = u16::try_from(part.len()).unwrap();
        [&length.to_be_bytes()[..], *part].concat()
    };
    parts.iter().flat_map(with_length).collect()
}

fn wrapped(parts: &[CertificateDer<'_>]) -> String {
    let block = |part: &CertificateDer<'_>| {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", base64(part))
    };
    parts.iter().map(block).collect()
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A CA and a leaf of it, with their keys.
struct Made {
    authority: rcgen::Certificate,
    leaf: rcgen::Certificate,
    key: KeyPair,
}

fn made() -> Made {
    let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    let signed = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let names = vec!["a.example.com".to_owned(), "10.0.0.1".to_owned()];
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    Made { authority: signed, leaf, key }
}

/// A certificate and its key.
pub(crate) fn pem() -> (String, String) {
    let Made { leaf, key, .. } = made();
    (leaf.pem(), key.serialize_pem())
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let Made { authority, leaf, key } = made();
    let chain = joined(&[leaf.der(), authority.der()]);
    let file = format!("{}{}{}", leaf.pem(), authority.pem(), key.serialize_pem());
    let select = |select: u8, data: &[u8]| [&[select][..], data].concat();
    vec![
        select(0, file.as_bytes()),
        select(0, authority.pem().as_bytes()),
        select(1, &chain),
        select(2, &chain),
        select(2, &joined(&[leaf.der(), leaf.der(), authority.der(), authority.der()])),
    ]
}
