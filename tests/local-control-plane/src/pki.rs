//! The certificates of a control plane: one CA for servers and clients, one for the front proxy,
//! and the key that signs ServiceAccount tokens.
//!
//! The front proxy has a CA of its own: with a shared one every client certificate could pass
//! itself off as a proxy and name any user.

use std::time::{Duration, SystemTime};

use anyhow::bail;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate authority.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

/// A certificate with its private key.
pub struct Identity {
    /// The certificate, in PEM.
    pub certificate_pem: String,
    /// The private key, in PEM.
    pub key_pem: String,
    /// The certificate, in DER.
    pub certificate: CertificateDer<'static>,
    /// Its key, in DER.
    pub key: PrivateKeyDer<'static>,
}

impl Ca {
    pub(crate) fn new(name: &str) -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Ok(Self { issuer: Issuer::new(params, key), pem, der })
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Its certificate, for clients that trust it.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    pub(crate) fn identity(&self) -> Identity {
        let key = self.issuer.key();
        Identity {
            certificate_pem: self.pem.clone(),
            key_pem: key.serialize_pem(),
            certificate: self.der.clone(),
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        }
    }

    /// A certificate for a server on the loopback interface.
    pub fn server(&self) -> anyhow::Result<Identity> {
        let names = ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned))?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a client: kube-apiserver takes the CN for the user and each O for a group.
    pub fn client(&self, user: &str, groups: &[&str]) -> anyhow::Result<Identity> {
        self.sign(client_params(user, groups)?)
    }

    /// Like [`Self::client`], valid from a minute ago until `life` from now.
    pub(crate) fn client_for(
        &self,
        user: &str,
        groups: &[&str],
        life: Duration,
    ) -> anyhow::Result<Identity> {
        let mut params = client_params(user, groups)?;
        params.not_before = (SystemTime::now() - Duration::from_secs(60)).into();
        params.not_after = (SystemTime::now() + life).into();
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> anyhow::Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        })
    }
}

fn client_params(user: &str, groups: &[&str]) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::default();
    let name = &mut params.distinguished_name;
    *name = DistinguishedName::new();
    name.push(DnType::CommonName, user);
    // rcgen keeps one value per type of name; O under its number is a second type to it.
    let kinds = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    if groups.len() > kinds.len() {
        bail!("cannot make a certificate for {user:?}: at most {} groups", kinds.len());
    }
    for (kind, group) in kinds.into_iter().zip(groups) {
        name.push(kind, *group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

/// The key pair for ServiceAccount tokens, as PEM: (private, public). kube-apiserver reads the
/// verifying key only in its public form when the private one is PKCS#8.
pub(crate) fn token_keys() -> anyhow::Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
