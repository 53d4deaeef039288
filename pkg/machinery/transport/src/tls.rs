//! Trust, client certificates, and the TLS configurations made of them. Two connections with the
//! same trust and certificate share one configuration, however many servers there are.
//!
//! Sessions are never resumed (`rule:sessions-are-not-resumed`).

mod anchors;
mod error;
mod material;
mod pem_problem;
mod refusal;
mod verifier;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use ring::digest::{Context, Digest, SHA256};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;

pub use error::TlsError;
pub use material::{ClientCertificate, Trust};
pub use pem_problem::PemProblem;

use crate::protocol::Protocol;
use verifier::{BundleVerifier, FixedVerdict};

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
    add(&[
        trust.tag(),
        u8::from(certificate.is_some()),
        u8::from(protocol == Protocol::Negotiated),
    ]);
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
        Trust::Nothing => Arc::new(FixedVerdict::trust(&provider)),
        Trust::Bundle(bundle) => Arc::new(BundleVerifier::new(bundle, &provider)?),
        Trust::System => match BundleVerifier::new(&system_bundle(), &provider) {
            Err(TlsError::NoSystemTrust) => Arc::new(FixedVerdict::refuse(&provider)),
            verifier => Arc::new(verifier?),
        },
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
        Protocol::Http1 | Protocol::Slim => vec![b"http/1.1".to_vec()],
    };
    Ok(config)
}

fn system_bundle() -> Vec<rustls::pki_types::CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

#[cfg(test)]
mod tests;
