//! Trust, client certificates, and the TLS configurations made of them. Two connections with the
//! same trust and certificate share one configuration, however many servers there are.
//!
//! Sessions are never resumed (`rule:sessions-are-not-resumed`).

mod bundle;
mod error;
mod fields;
mod material;
mod refusal;
mod shared;
mod verifier;

use std::sync::Arc;

use ring::digest::{Context, SHA256};
use rustls::ClientConfig;
use rustls::client::Resumption;

pub use error::TlsError;
pub use fields::Fields;
pub use material::{ClientCertificate, Trust, Waived};

use crate::protocol::Protocol;
use bundle::Bundle;
use material::Whom;
use shared::{Key, Shared};
use verifier::{Judge, ServerVerifier};

/// The TLS configurations in use, and the verifiers in them, by what they are made of.
#[derive(Debug, Default)]
pub struct TlsConfigs {
    configs: Shared<ClientConfig>,
    /// Members of one authority have certificates of their own and this in common.
    verifiers: Shared<ServerVerifier>,
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
        let alpn: &[u8] = if protocol == Protocol::Negotiated { b"any" } else { b"http/1.1" };
        let pair: &[u8] = if certificate.is_some() { b"certificate" } else { b"" };
        let parts = certificate.into_iter().flat_map(ClientCertificate::parts);
        let key = key_of([alpn].into_iter().chain(trust.parts()).chain([pair]).chain(parts));
        self.configs.get_or_make(key, || {
            let verifier = self.verifiers.get_or_make(key_of(trust.parts()), || verifier(trust));
            build(verifier?, certificate, protocol)
        })
    }
}

fn key_of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Key {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&part.len().to_le_bytes());
        hash.update(part);
    }
    let mut key = Key::default();
    key.copy_from_slice(hash.finish().as_ref());
    key
}

fn verifier(trust: &Trust) -> Result<ServerVerifier, TlsError> {
    let judge = match &trust.whom {
        Whom::Anybody => Judge::Anybody,
        Whom::Bundle(bundle) => Judge::Bundle(Bundle::new(bundle, trust.waived, trust.fields)?),
        Whom::System => match Bundle::new(&system_bundle(), trust.waived, trust.fields) {
            Err(TlsError::NoSystemTrust(field)) => Judge::Nobody(field),
            bundle => Judge::Bundle(bundle?),
        },
    };
    Ok(ServerVerifier::new(judge, &rustls::crypto::ring::default_provider()))
}

fn build(
    verifier: Arc<ServerVerifier>,
    certificate: Option<&ClientCertificate>,
    protocol: Protocol,
) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
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
