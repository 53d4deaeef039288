//! Certificates of servers that API servers do not make for themselves.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SigningKey as _, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificate of a server, and the CA that verifies it.
pub(crate) struct Shown {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
    /// The CA, in PEM.
    pub(crate) voucher: String,
}

impl Shown {
    fn own(certificate: &Certificate, key: &KeyPair) -> Self {
        let (der, voucher) = (certificate.der().clone(), certificate.pem());
        Self { certificate: der, key: PrivateKeyDer::Pkcs8(key.serialize_der().into()), voucher }
    }
}

fn params() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "member");
    params
}

/// A certificate as `openssl req -x509` makes it: CA and server certificate in one.
pub(crate) fn own_authority() -> Shown {
    let (mut params, key) = (params(), KeyPair::generate().unwrap());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Shown::own(&params.self_signed(&key).unwrap(), &key)
}

/// A self-signed certificate that is not a CA.
pub(crate) fn own_certificate() -> Shown {
    let key = KeyPair::generate().unwrap();
    Shown::own(&params().self_signed(&key).unwrap(), &key)
}

/// A certificate of a trusted CA that expired in 2012.
pub(crate) fn expired() -> Shown {
    let (mut authority, ca_key) = (CertificateParams::default(), KeyPair::generate().unwrap());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let voucher = authority.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(authority, ca_key);
    let (mut params, key) = (params(), KeyPair::generate().unwrap());
    (params.not_before, params.not_after) = (date_time_ymd(2010, 1, 1), date_time_ymd(2012, 1, 1));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Shown { voucher, ..Shown::own(&params.signed_by(&key, &issuer).unwrap(), &key) }
}

/// Signed by itself, of version 1: without a name that a server could be asked for.
pub(crate) fn of_version_1() -> Shown {
    let key = KeyPair::generate().unwrap();
    let certificate = params().self_signed(&key).unwrap();
    let old = without_extensions(certificate.der(), &key);
    let voucher = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &old)
    );
    Shown { certificate: old.into(), voucher, ..Shown::own(&certificate, &key) }
}

/// Rewrites a certificate of version 3 as one of version 1, and signs it again.
fn without_extensions(certificate: &[u8], key: &KeyPair) -> Vec<u8> {
    let whole = contents(certificate, 0);
    let body = contents(certificate, whole.start);
    // The version goes; serial, algorithm, issuer, validity, subject and key stay.
    let first = contents(certificate, body.start).end;
    let mut end = first;
    for _ in 0..6 {
        end = contents(certificate, end).end;
    }
    let body_1 = element(0x30, &certificate[first..end]);
    let algorithm = &certificate[body.end..contents(certificate, body.end).end];
    let signature = [&[0][..], &key.sign(&body_1).unwrap()].concat();
    element(0x30, &[&body_1, algorithm, &element(0x03, &signature)].concat())
}

/// Range of the contents of the DER element at `at`.
fn contents(der: &[u8], at: usize) -> std::ops::Range<usize> {
    let short = usize::from(der[at + 1]);
    let (start, length) = match short.checked_sub(0x80) {
        None => (at + 2, short),
        Some(bytes) => {
            let length = &der[at + 2..at + 2 + bytes];
            (at + 2 + bytes, length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
        }
    };
    start..start + length
}

fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len();
    let [high, low] = u16::try_from(length).unwrap().to_be_bytes();
    let head = match length {
        0..0x80 => vec![tag, low],
        0x80..0x100 => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [&head, contents].concat()
}
