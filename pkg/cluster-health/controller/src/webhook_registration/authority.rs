//! [`Authority`]: one authority with its key, and the certificates that it signs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use zeroize::Zeroizing;

/// Clocks of API servers may be behind.
const BACKDATED: Duration = Duration::from_secs(3600);

/// An authority that can sign. It has no printable form: it holds a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    pub(crate) certificate: String,
    pub(crate) key: Zeroizing<String>,
    /// When it was made.
    pub(crate) made: SystemTime,
    pub(crate) until: SystemTime,
}

/// A serving certificate and its key, in PEM.
pub struct Leaf {
    /// The certificate.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: Zeroizing<String>,
    /// When it expires.
    pub until: SystemTime,
}

/// Why there is no certificate. Holds nothing of a key.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The stored authority is not ours.
    #[error("cannot use the stored CA: {0}")]
    Stored(&'static str),
    /// The library refused, or there are no random numbers.
    #[error("cannot create a certificate: {0}")]
    Sign(#[from] rcgen::Error),
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn make(now: SystemTime, life: Duration) -> Result<Self, AuthorityError> {
        let now = whole_seconds(now);
        let until = now + life;
        let mut params = CertificateParams::default();
        let stamp = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        params.distinguished_name = named(format!("infra-controller-manager-webhook-ca@{stamp}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        params.not_before = (now - BACKDATED).into();
        params.not_after = until.into();
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, key: Zeroizing::new(key.serialize_pem()), made: now, until })
    }

    /// Reads what is stored of one.
    ///
    /// # Errors
    /// It is not whole.
    pub fn read(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let (from, until, public) = facts(certificate)?;
        let pair = KeyPair::from_pem(key)
            .map_err(|_| AuthorityError::Stored("its key is not a private key"))?;
        if public != pair.public_key_raw() {
            return Err(AuthorityError::Stored("its key does not match its certificate"));
        }
        let (certificate, key) = (certificate.to_owned(), Zeroizing::new(key.to_owned()));
        Ok(Self { certificate, key, made: from + BACKDATED, until })
    }

    /// The certificate, in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for these names and addresses, at least one, and its key. It does not outlive
    /// the authority.
    ///
    /// # Errors
    /// One cannot stand in a certificate.
    pub fn sign(
        &self,
        names: &[String],
        now: SystemTime,
        life: Duration,
    ) -> Result<Leaf, AuthorityError> {
        let der = CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|_| AuthorityError::Stored("its certificate is not PEM"))?;
        let issuer = Issuer::from_ca_cert_der(&der, KeyPair::from_pem(&self.key)?)?;
        let now = whole_seconds(now);
        let until = (now + life).min(self.until);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = named("infra-controller-manager-webhook".to_owned());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.not_before = (now - BACKDATED).into();
        params.not_after = until.into();
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Leaf { certificate, key: Zeroizing::new(key.serialize_pem()), until })
    }
}

/// From when and until when a certificate is good, and its public key.
pub(crate) fn facts(
    certificate: &str,
) -> Result<(SystemTime, SystemTime, Vec<u8>), AuthorityError> {
    let bad = || AuthorityError::Stored("its certificate is not valid");
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|_| bad())?;
    let (_, read) = X509Certificate::from_der(&der).map_err(|_| bad())?;
    let validity = read.validity();
    let time = |seconds: i64| UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap_or(0));
    let public = read.public_key().subject_public_key.data.to_vec();
    Ok((time(validity.not_before.timestamp()), time(validity.not_after.timestamp()), public))
}

fn named(name: String) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Time in the precision of certificates, so that parsing returns the value that was encoded.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}
