//! The certificates of a cluster: authorities, the keys of service accounts, and the
//! administrator's certificate. Pure but for the random numbers of keys; nothing is read from or
//! written to the cluster.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use zeroize::Zeroizing;

const AUTHORITY_LIFE: Duration = Duration::from_secs(3650 * 24 * 3600);
const CLIENT_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks of Nodes may be behind.
const BACKDATED: Duration = Duration::from_secs(300);

/// A certificate or public key with its private key, in PEM.
pub(crate) struct Identity {
    pub(crate) public: String,
    pub(crate) private: Zeroizing<String>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("cannot read the certificate of the authority: give one certificate in PEM")]
    Certificate,
    /// The authority's key is of no known form.
    #[error(
        "cannot read the key of the authority: give an RSA key of 2048 bits or more, or an ECDSA key of P-256 or P-384, in PEM"
    )]
    Key,
    #[error("cannot use the authority: its key does not match its certificate")]
    Mismatch,
    #[error("cannot use the authority: its certificate has expired; replace it")]
    Expired,
    #[error("cannot create a certificate: {0}")]
    Sign(#[from] rcgen::Error),
}

/// A new authority with an ECDSA P-256 key: `ring` makes no RSA keys, and Kubernetes takes both.
/// Authorities of users are read in every common form, RSA included.
pub(crate) fn new_authority(now: SystemTime) -> Result<Identity, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(&[(DnType::CommonName, "kubernetes")]);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + AUTHORITY_LIFE).into();
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Identity { public: certificate.pem(), private: Zeroizing::new(key.serialize_pem()) })
}

/// New keys for the tokens of service accounts.
pub(crate) fn new_service_account_keys() -> Result<Identity, CertificateError> {
    let key = KeyPair::generate()?;
    Ok(Identity { public: key.public_key_pem(), private: Zeroizing::new(key.serialize_pem()) })
}

/// An authority that can sign.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    not_before: SystemTime,
}

impl Authority {
    /// Reads what is stored of an authority, whoever made it.
    pub(crate) fn read(
        certificate: &str,
        key: &str,
        now: SystemTime,
    ) -> Result<Self, CertificateError> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|_| CertificateError::Certificate)?;
        let key = read(key).ok_or(CertificateError::Key)?;
        let (not_before, not_after, public) = {
            let (_, parsed) = X509Certificate::from_der(&certificate)
                .map_err(|_| CertificateError::Certificate)?;
            let validity = parsed.validity();
            let public = parsed.public_key().subject_public_key.data.to_vec();
            (time(validity.not_before.timestamp()), time(validity.not_after.timestamp()), public)
        };
        if public != key.public_key_raw() {
            return Err(CertificateError::Mismatch);
        }
        if not_after <= now {
            return Err(CertificateError::Expired);
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key)?;
        Ok(Self { certificate, issuer, not_before })
    }

    /// A certificate of the cluster's administrator, for a year.
    pub(crate) fn administrator(&self, now: SystemTime) -> Result<Identity, CertificateError> {
        let mut params = CertificateParams::default();
        let name = [
            (DnType::OrganizationName, "system:masters"),
            (DnType::CommonName, "kubernetes-admin"),
        ];
        params.distinguished_name = named(&name);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        // Clocks that take the authority take it too.
        params.not_before = self.not_before.into();
        params.not_after = (now + CLIENT_LIFE).into();
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { public: certificate.pem(), private: Zeroizing::new(key.serialize_pem()) })
    }

    /// Until when a certificate is valid that this authority has signed; `None` for one of another.
    pub(crate) fn signed_until(&self, certificate: &str) -> Option<SystemTime> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
        let (_, certificate) = X509Certificate::from_der(&certificate).ok()?;
        let (_, authority) = X509Certificate::from_der(&self.certificate).ok()?;
        certificate.verify_signature(Some(authority.public_key())).ok()?;
        Some(time(certificate.validity().not_after.timestamp()))
    }
}

/// From when on a certificate of the administrator is renewed: when half of a year is left.
pub(crate) fn renew_at(until: SystemTime) -> SystemTime {
    until.checked_sub(CLIENT_LIFE / 2).unwrap_or(UNIX_EPOCH)
}

fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

fn named(parts: &[(DnType, &str)]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, text) in parts {
        name.push(kind.clone(), *text);
    }
    name
}

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
/// `INTEGER 0`.
const VERSION: [u8; 3] = [0x02, 0x01, 0x00];
/// Algorithm identifier `rsaEncryption`, with `NULL`, in DER.
const RSA: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// `ecPublicKey` with `prime256v1`.
const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// `ecPublicKey` with `secp384r1`.
const P384: &[u8] = &[
    0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04,
    0x00, 0x22,
];

/// The first private key of a PEM text, after whatever else stands in it.
fn read(pem: &str) -> Option<KeyPair> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()? {
        PrivateKeyDer::Pkcs8(key) => KeyPair::try_from(&key).ok(),
        PrivateKeyDer::Pkcs1(key) => wrapped(RSA, key.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(key) => {
            let key = key.secret_sec1_der();
            wrapped(P256, key).or_else(|| wrapped(P384, key))
        }
        _ => None,
    }
}

fn wrapped(algorithm: &[u8], key: &[u8]) -> Option<KeyPair> {
    let key = element(OCTET_STRING, &[key]);
    let pkcs8 = element(SEQUENCE, &[&VERSION, algorithm, &key]);
    KeyPair::try_from(&PrivatePkcs8KeyDer::from(&**pkcs8)).ok()
}

/// One element of DER. Its contents are shorter than 64 KiB, as keys are.
fn element(tag: u8, parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    // So large that it does not move while it grows: what it held before would not be wiped.
    let mut der = Vec::with_capacity(length + 4);
    match (high, low) {
        (0, 0..0x80) => der.extend([tag, low]),
        (0, _) => der.extend([tag, 0x81, low]),
        _ => der.extend([tag, 0x82, high, low]),
    }
    for part in parts {
        der.extend_from_slice(part);
    }
    Zeroizing::new(der)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> SystemTime {
        time(1_800_000_000)
    }

    fn authority() -> (Identity, Authority) {
        let made = new_authority(now()).unwrap();
        let read = Authority::read(&made.public, &made.private, now()).unwrap();
        (made, read)
    }

    fn parsed<T>(pem: &str, read: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        read(&X509Certificate::from_der(&der).unwrap().1)
    }

    #[test]
    fn an_authority_signs_clusters_for_ten_years_and_no_other_authorities() {
        let (made, _) = authority();
        parsed(&made.public, |certificate| {
            assert_eq!(certificate.subject().to_string(), "CN=kubernetes");
            assert_eq!(certificate.issuer(), certificate.subject());
            let basic = certificate.basic_constraints().unwrap().unwrap();
            assert!(basic.critical && basic.value.ca);
            assert_eq!(basic.value.path_len_constraint, Some(0));
            assert!(certificate.key_usage().unwrap().unwrap().value.key_cert_sign());
            let validity = certificate.validity();
            assert_eq!(validity.not_before.timestamp(), 1_800_000_000 - 300);
            assert_eq!(validity.not_after.timestamp(), 1_800_000_000 + 3650 * 86400);
        });
    }

    #[test]
    fn the_administrator_is_of_the_masters_and_may_only_be_a_client_for_a_year() {
        let (_, authority) = authority();
        let later = now() + Duration::from_secs(1000);
        let administrator = authority.administrator(later).unwrap();
        parsed(&administrator.public, |certificate| {
            assert_eq!(certificate.subject().to_string(), "O=system:masters, CN=kubernetes-admin");
            let usage = certificate.extended_key_usage().unwrap().unwrap().value;
            assert!(usage.client_auth && !usage.server_auth && !usage.any);
            assert!(certificate.serial.bits() > 0);
            assert_eq!(certificate.validity().not_before.timestamp(), 1_800_000_000 - 300);
        });
        let until = authority.signed_until(&administrator.public).unwrap();
        assert_eq!(until, later + Duration::from_secs(365 * 86400));
        assert_eq!(renew_at(until), later + Duration::from_secs(365 * 43200));
        let (_, other) = self::authority();
        assert_eq!(other.signed_until(&administrator.public), None);
        assert_eq!(other.signed_until("no certificate"), None);
    }

    #[test]
    fn an_authority_that_cannot_sign_is_refused_with_the_reason() {
        let (one, other) = (new_authority(now()).unwrap(), new_authority(now()).unwrap());
        let refused = |certificate: &str, key: &str, at| {
            Authority::read(certificate, key, at).err().map(|error| error.to_string()).unwrap()
        };
        assert!(
            refused(&one.public, &other.private, now()).contains("does not match its certificate")
        );
        let late = now() + AUTHORITY_LIFE;
        assert!(refused(&one.public, &one.private, late).contains("has expired"));
        assert!(refused("", &one.private, now()).contains("give one certificate in PEM"));
        let bad = refused(
            &one.public,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            now(),
        );
        assert!(bad.contains("cannot read the key") && !bad.contains("AAAA"), "{bad}");
    }

    /// Certificate and key of an authority that `openssl` made for these tests alone, for a hundred
    /// years. Each key is in a form that kubeadm, kops or people use.
    macro_rules! made_by_openssl {
        ($($name:literal),*) => {
            [$(($name, include_str!(concat!("certificates/testdata/", $name, ".pem")))),*]
        };
    }

    #[test]
    fn authorities_with_keys_of_every_common_form_sign() {
        let now = SystemTime::now();
        for (name, pem) in
            made_by_openssl!["rsa-pkcs1", "rsa-pkcs8", "p256-sec1", "p384-sec1", "p256-pkcs8"]
        {
            let authority =
                Authority::read(pem, pem, now).unwrap_or_else(|error| panic!("{name}: {error}"));
            let administrator = authority.administrator(now).unwrap();
            assert!(authority.signed_until(&administrator.public).is_some(), "{name}");
            parsed(&administrator.public, |client| {
                parsed(pem, |authority| {
                    assert_eq!(client.issuer().as_raw(), authority.subject().as_raw(), "{name}");
                });
            });
        }
        let [(_, short)] = made_by_openssl!["rsa-1024"];
        assert!(matches!(Authority::read(short, short, now), Err(CertificateError::Key)));
    }
}
