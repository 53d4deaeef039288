//! The chain we make when none is given: a leaf and a CA whose key is thrown away.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::sign::CertifiedKey;

use super::pair::Pair;
use crate::ServeError;

const LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks of clients may be behind.
const BACKDATED: Duration = Duration::from_secs(3600);
/// The issuer's name begins so and ends with the time of making in Unix seconds.
const ISSUER: &str = "localhost-ca@";

/// Makes a fresh chain for localhost and the specific addresses that we listen on.
pub(super) fn generate(bind: &[IpAddr], now: SystemTime) -> Result<Pair, ServeError> {
    let stamp = unix(now);
    let ca_key = KeyPair::generate()?;
    let mut ca = dated(CertificateParams::default(), now);
    ca.distinguished_name = named(format!("{ISSUER}{stamp}"));
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca_cert = ca.self_signed(&ca_key)?;

    let mut names = vec!["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()];
    let specific = |ip: &&IpAddr| !ip.is_unspecified() && **ip != IpAddr::V4(Ipv4Addr::LOCALHOST);
    names.extend(bind.iter().filter(specific).map(IpAddr::to_string));
    let leaf_key = KeyPair::generate()?;
    let mut leaf = dated(CertificateParams::new(names)?, now);
    leaf.distinguished_name = named(format!("localhost@{stamp}"));
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf_cert = leaf.signed_by(&leaf_key, &Issuer::new(ca, ca_key))?;

    let chain = format!("{}{}", leaf_cert.pem(), ca_cert.pem());
    Ok(Pair { chain: chain.into_bytes(), key: leaf_key.serialize_pem().into_bytes() })
}

/// Whether the leaf is of our making and past 2/3 of its life. One that somebody else put into the
/// folder is theirs to renew.
pub(super) fn is_due(key: &CertifiedKey, now: SystemTime) -> bool {
    made_at(key).is_some_and(|made| now >= made + LIFE * 2 / 3)
}

/// When we made this leaf; none when we did not. The issuer's name says both, so no X.509 parser
/// is needed for the one date we ask about.
pub(super) fn made_at(key: &CertifiedKey) -> Option<SystemTime> {
    let leaf: &[u8] = key.cert.first()?;
    let name = leaf.windows(ISSUER.len()).position(|at| at == ISSUER.as_bytes())?;
    // DER puts the length before the text. What follows the text may look like a digit.
    let end = name + usize::from(*leaf.get(name.checked_sub(1)?)?);
    let stamp = std::str::from_utf8(leaf.get(name + ISSUER.len()..end)?).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(stamp.parse().ok()?))
}

fn dated(mut params: CertificateParams, now: SystemTime) -> CertificateParams {
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + LIFE).into();
    params
}

fn named(common_name: String) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
