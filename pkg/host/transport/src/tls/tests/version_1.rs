use super::*;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{Issuer, SigningKey};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
const EXPLICIT_0: u8 = 0xa0;
const ANY_NAME: Waived = Waived { name: true, dates: false };

/// Where the contents of the element at `start` begin, and where it ends.
fn element(der: &[u8], start: usize) -> (usize, usize) {
    let digits = match der[start + 1] {
        short @ 0..0x80 => return (start + 2, start + 2 + usize::from(short)),
        long => usize::from(long & 0x7f),
    };
    let contents = start + 2 + digits;
    let add = |length, digit: &u8| (length << 8) | usize::from(*digit);
    (contents, contents + der[start + 2..contents].iter().fold(0, add))
}

fn sequence(contents: &[u8]) -> Vec<u8> {
    let length = u16::try_from(contents.len()).unwrap().to_be_bytes();
    [&[SEQUENCE, 0x82], &length[..], contents].concat()
}

/// `certificate` as `version` without its extensions, signed again by `key`.
fn older(
    certificate: &CertificateDer,
    version: Option<u8>,
    key: &KeyPair,
) -> CertificateDer<'static> {
    let (body, _) = element(certificate, 0);
    let (first, end_of_body) = element(certificate, body);
    let (_, serial) = element(certificate, first);
    // Serial, algorithm, issuer, validity, subject, key: six elements.
    let mut end = serial;
    for _ in 0..6 {
        (_, end) = element(certificate, end);
    }
    let version = version.map_or(vec![], |version| vec![EXPLICIT_0, 3, INTEGER, 1, version]);
    let body_1 = sequence(&[&version[..], &certificate[serial..end]].concat());
    let (_, end_of_algorithm) = element(certificate, end_of_body);
    let signature = key.sign(&body_1).unwrap();
    let mut bits = vec![BIT_STRING, u8::try_from(signature.len() + 1).unwrap(), 0];
    bits.extend(signature);
    let parts = [&body_1[..], &certificate[end_of_body..end_of_algorithm], &bits].concat();
    sequence(&parts).into()
}

fn self_signed(version: Option<u8>) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let certificate = params(&[]).self_signed(&key).unwrap();
    (older(certificate.der(), version, &key), key)
}

#[test]
fn a_server_of_version_1_is_good_where_its_name_is_not_asked_for() {
    for version in [None, Some(0), Some(1)] {
        let (own, _) = self_signed(version);
        let bundle = std::slice::from_ref(&own);
        assert_eq!(judge_chain(bundle, ANY_NAME, bundle, "api.example"), Ok(()));
        let error = judge(bundle, &own, "api.example").unwrap_err();
        assert!(error.contains("no subject alternative name"), "{error}");
    }
}

#[test]
fn an_authority_of_version_1_vouches_for_servers() {
    let (root, key) = self_signed(None);
    let issuer = Issuer::new(params(&[]), key);
    let key = KeyPair::generate().unwrap();
    let leaf = params(&["api.example"]).signed_by(&key, &issuer).unwrap();
    assert_eq!(judge(std::slice::from_ref(&root), leaf.der(), "api.example"), Ok(()));

    let old = older(leaf.der(), None, issuer.key());
    assert_eq!(judge_chain(&[root], ANY_NAME, &[old], "api.example"), Ok(()));
}

#[test]
fn an_intermediate_certificate_of_version_1_verifies_no_server() {
    let ca = authority("ca");
    let key = KeyPair::generate().unwrap();
    let between = params(&[]).signed_by(&key, &ca).unwrap();
    let between_1 = older(between.der(), None, ca.key());
    let issuer = Issuer::new(params(&[]), key);
    let leaf = signed_by(&issuer);
    let verdict = judge_chain(&[ca.der().clone()], ANY_NAME, &[leaf, between_1], "api.example");
    assert!(verdict.is_err());
}

fn signed_by(issuer: &Issuer<'_, KeyPair>) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    params(&["api.example"]).signed_by(&key, issuer).unwrap().der().clone()
}

#[test]
fn a_forged_signature_of_version_1_is_refused() {
    let (own, _) = self_signed(None);
    let forged = older(&own_of_other_key(&own), None, &KeyPair::generate().unwrap());
    assert!(judge_chain(&[own], ANY_NAME, &[forged], "api.example").is_err());
}

/// A certificate of the same names with another key.
fn own_of_other_key(_: &CertificateDer) -> CertificateDer<'static> {
    params(&[]).self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
}

#[test]
fn hands_are_shaken_with_a_server_of_version_1_in_both_versions_of_tls() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    for tls in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (own, key) = self_signed(None);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let key = provider.key_provider.load_private_key(key).unwrap();
        let resolver = rustls::sign::CertifiedKey::new(vec![own.clone()], key);
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[tls])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(resolver)));
        let text = BASE64_STANDARD.encode(&own);
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        let named = Trust::from_pem(pem.as_bytes()).unwrap().waiving(ANY_NAME);
        for trust in [named, Trust::anybody()] {
            let client = TlsConfigs::default().get(&trust, None, Protocol::Http1).unwrap();
            shake_hands(&client, &Arc::new(server.clone()));
        }
    }
}
