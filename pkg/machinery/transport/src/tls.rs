//! Trust, client certificates, and the TLS configurations made of them. Two connections with the
//! same trust and certificate share one configuration, however many servers there are.
//!
//! Sessions are never resumed (`rule:sessions-are-not-resumed`).

mod material;
mod refusal;
mod verifier;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use ring::digest::{Context, Digest, SHA256};
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::{ClientConfig, RootCertStore};

pub use material::{ClientCertificate, Trust};

use crate::wire::Protocol;
use verifier::{BundleVerifier, NoVerification};

/// Certificates or keys that cannot be used. Never quotes a key.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TlsError {
    /// Neither a certificate nor anything else in PEM.
    #[error("it holds no certificate in PEM")]
    NoCertificate,
    /// The file holds a certificate that cannot be read.
    #[error("it is not PEM: {0}")]
    Pem(#[source] Arc<rustls::pki_types::pem::Error>),
    /// None of the CA certificates can be used.
    #[error("none of its certificates can be used as a CA: {0}")]
    Authority(#[source] rustls::Error),
    /// No private key where one belongs.
    #[error("it holds no private key in PEM (PKCS#8, PKCS#1 or SEC1)")]
    NoKey,
    /// Certificate and key are not a pair, or of a kind that is not supported.
    #[error("the client certificate and its key cannot be used together: {0}")]
    Pair(#[source] rustls::Error),
    /// The system has no CA certificates, and no bundle was given.
    #[error("the system has no CA certificates; give a CA bundle (certificate-authority)")]
    NoSystemTrust,
    /// The cryptography offers no TLS version. Cannot happen with the one that is built in.
    #[error("cannot set up TLS: {0}")]
    Setup(#[source] rustls::Error),
}

type Key = [u8; 32];

/// The TLS configurations in use, by what they are made of.
#[derive(Debug, Default)]
pub struct TlsConfigs {
    in_use: Mutex<HashMap<Key, Weak<ClientConfig>>>,
}

impl TlsConfigs {
    /// The configuration for `trust` and `certificate`: the one in use, or a new one.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn get(
        &self,
        trust: &Trust,
        certificate: Option<&ClientCertificate>,
        protocol: Protocol,
    ) -> Result<Arc<ClientConfig>, TlsError> {
        let key = key_of(trust, certificate, protocol);
        if let Some(config) = self.in_use.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(config);
        }
        let config = Arc::new(build(trust, certificate, protocol)?);
        let mut in_use = self.in_use.lock();
        in_use.retain(|_, config| config.strong_count() > 0);
        in_use.insert(key, Arc::downgrade(&config));
        Ok(config)
    }
}

fn key_of(trust: &Trust, certificate: Option<&ClientCertificate>, protocol: Protocol) -> Key {
    let mut hash = Context::new(&SHA256);
    let mut add = |part: &[u8]| {
        hash.update(&part.len().to_le_bytes());
        hash.update(part);
    };
    add(&[trust.tag(), u8::from(certificate.is_some()), u8::from(protocol == Protocol::Http1)]);
    trust.bundle().iter().for_each(|der| add(der));
    if let Some(certificate) = certificate {
        add(b"certificate");
        certificate.parts().for_each(add);
    }
    let digest: Digest = hash.finish();
    let mut key = Key::default();
    key.copy_from_slice(digest.as_ref());
    key
}

fn build(
    trust: &Trust,
    certificate: Option<&ClientCertificate>,
    protocol: Protocol,
) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Nothing => Arc::new(NoVerification::new(&provider)),
        Trust::Bundle(bundle) => Arc::new(BundleVerifier::new(bundle, &provider)?),
        Trust::System => Arc::new(BundleVerifier::new(&system_bundle(), &provider)?),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(pair) => builder
            .with_client_auth_cert(pair.chain().to_vec(), pair.key().clone_key())
            .map_err(TlsError::Pair)?,
    };
    config.resumption = Resumption::disabled();
    config.alpn_protocols = match protocol {
        Protocol::Negotiated => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
    };
    Ok(config)
}

fn system_bundle() -> Vec<rustls::pki_types::CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

/// The anchors among `bundle`; as Go does, what cannot be one is left out.
fn anchors(
    bundle: &[rustls::pki_types::CertificateDer<'static>],
) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let mut first_error = None;
    for der in bundle {
        if let Err(error) = roots.add(der.clone()) {
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        _ if !roots.is_empty() => Ok(roots),
        Some(error) => Err(TlsError::Authority(error)),
        None => Err(TlsError::NoSystemTrust),
    }
}

#[cfg(test)]
mod tests;
