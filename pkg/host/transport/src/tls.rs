//! Trust, client certificates, and the TLS configurations made of them. Two connections with the
//! same trust and certificate share one configuration, however many servers there are.
//!
//! Sessions are never resumed.

mod material;
mod verifier;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use rustls::ClientConfig;
use rustls::client::Resumption;

use crate::tls::material::Whom;
use crate::tls::verifier::{Bundle, Judge, ServerVerifier};

pub use material::{ClientCertificate, Fields, TlsError, Trust, Waived};

/// The TLS configurations in use, and the verifiers in them, by what they are made of.
#[derive(Debug, Default)]
pub struct TlsConfigs {
    configs: Shared<ClientConfig>,
    /// Members of one authority have certificates of their own and this in common.
    verifiers: Shared<ServerVerifier>,
}

impl TlsConfigs {
    /// The configuration for `trust` and `certificate`: the one in use, or a new one.
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
            Err(TlsError::NoSystemTrust(field)) => Judge::NoTrust(field),
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

/// The version of HTTP that a pool of connections speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 where the server offers it: all requests share one connection.
    Negotiated,
    /// HTTP/1.1, where a request that fails or is given up takes its connection with it, so that
    /// the next one starts on a fresh one. That is what the lease needs.
    Http1,
    /// HTTP/1.1 with small buffers and one connection that stays open, for one small request at a
    /// time: what a prober of thousands of servers needs.
    Slim,
}

/// A hash of everything that a value is made of.
pub(crate) type Key = [u8; 32];

/// The values in use, by key.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    in_use: Mutex<HashMap<Key, Weak<T>>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { in_use: Mutex::default() }
    }
}

impl<T> Shared<T> {
    /// The value of `key` that is in use, or what `make` makes. Two callers may make it at the same
    /// time; then the values are alike and not one, which costs memory and nothing else.
    pub(crate) fn get_or_make<E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(value) = self.in_use.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(value);
        }
        let value = Arc::new(make()?);
        let mut in_use = self.in_use.lock();
        // Only when the map would grow, so that many values cost no more than a few.
        if in_use.len() == in_use.capacity() {
            in_use.retain(|_, value| value.strong_count() > 0);
        }
        in_use.insert(key, Arc::downgrade(&value));
        Ok(value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.in_use.lock().len()
    }
}

#[cfg(test)]
mod tests;
