//! Certificates for the servers of the tests.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, version};
use tokio_rustls::TlsAcceptor;

use crate::inputs::ClientPair;

/// An authority and what it signs.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// The years in which a certificate is valid.
pub(super) type Years = (i32, i32);

pub(super) const NOW: Years = (2020, 2049);
pub(super) const PAST: Years = (2010, 2012);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> Vec<u8> {
        self.0.pem().into()
    }

    /// A server for `name`; with `clients` it wants a certificate of that authority.
    pub(super) fn server(&self, name: &str, years: Years, clients: Option<&Self>) -> TlsAcceptor {
        let (key, certificate) = self.sign(name, years);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.0.der().clone()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = key.serialize_der().try_into().unwrap();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    pub(super) fn client(&self, years: Years) -> ClientPair {
        let (key, certificate) = self.sign("client", years);
        ClientPair {
            certificate: certificate.pem().into(),
            key: key.serialize_pem().into_bytes().into(),
        }
    }

    fn sign(&self, name: &str, years: Years) -> (KeyPair, rcgen::Certificate) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (key, certificate)
    }
}
