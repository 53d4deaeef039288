//! What TLS a listener speaks: versions, cipher suites, key exchange groups.

mod choice;
mod known;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::server::ResolvesServerCert;
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version};

pub use choice::{TlsChoice, TlsFinding};

use crate::ServeError;
use crate::client_ca::AnyClient;

/// The TLS of a listener; by default everything that the library can do. [`TlsChoice`] makes one
/// from flags.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    versions: Vec<&'static SupportedProtocolVersion>,
    suites: Vec<SupportedCipherSuite>,
    /// Best first.
    groups: Vec<&'static dyn SupportedKxGroup>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        let CryptoProvider { cipher_suites, kx_groups, .. } = ring::default_provider();
        let versions = vec![&version::TLS13, &version::TLS12];
        Self { versions, suites: cipher_suites, groups: kx_groups }
    }
}

impl TlsOptions {
    /// The configuration of a listener that shows the pair of `certificates`, and may ask clients
    /// for theirs.
    pub(crate) fn server_config(
        &self,
        certificates: Arc<dyn ResolvesServerCert>,
        ask_clients: bool,
        http2: bool,
    ) -> Result<ServerConfig, ServeError> {
        let provider = CryptoProvider {
            cipher_suites: self.suites.clone(),
            kx_groups: self.groups.clone(),
            ..ring::default_provider()
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&self.versions)?;
        let builder = if ask_clients {
            builder.with_client_cert_verifier(Arc::new(AnyClient::default()))
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if http2 {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(config)
    }
}
