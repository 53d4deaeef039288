//! Where a server is reached and what is trusted there.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::protocol::Protocol;
use crate::proxy::Proxy;
use crate::tls::{ClientCertificate, TlsConfigs, TlsError, Trust};

/// TCP, proxy and TLS handshake together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How connections to one server are made. The address is part of each request.
#[derive(Clone)]
pub struct Endpoint {
    /// For the server.
    pub(crate) tls: Arc<ClientConfig>,
    /// For a proxy that speaks TLS: a trust of its own, and never our certificate.
    pub(crate) proxy_tls: Option<Arc<ClientConfig>>,
    pub(crate) server_name: Option<ServerName<'static>>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) protocol: Protocol,
    pub(crate) connect_timeout: Duration,
}

impl Endpoint {
    /// An endpoint whose server must satisfy `trust` and gets to see `certificate`.
    ///
    /// # Errors
    /// Trust or certificate cannot be used.
    pub fn new(
        configs: &TlsConfigs,
        trust: &Trust,
        certificate: Option<&ClientCertificate>,
        protocol: Protocol,
    ) -> Result<Self, TlsError> {
        let tls = configs.get(trust, certificate, protocol)?;
        let connect_timeout = CONNECT_TIMEOUT;
        Ok(Self { tls, proxy_tls: None, server_name: None, proxy: None, protocol, connect_timeout })
    }

    /// Gives up a connection that is not open after `limit`, TCP, proxy and TLS handshake together;
    /// it is 10 s otherwise.
    #[must_use]
    pub fn opened_within(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Checks the server's certificate against `name` instead of the host of the request.
    #[must_use]
    pub fn named(mut self, name: Option<ServerName<'static>>) -> Self {
        self.server_name = name;
        self
    }

    /// Reaches the server through `proxy`, which must satisfy `trust` if it speaks TLS.
    ///
    /// # Errors
    /// The trust cannot be used.
    pub fn through(
        mut self,
        proxy: Proxy,
        configs: &TlsConfigs,
        trust: &Trust,
    ) -> Result<Self, TlsError> {
        let tls = proxy.speaks_tls().then(|| configs.get(trust, None, Protocol::Http1));
        self.proxy_tls = tls.transpose()?;
        self.proxy = Some(proxy);
        Ok(self)
    }

    /// Whether a connection made for `other` may carry what is sent to `self`.
    pub fn shares_connections_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tls, &other.tls)
            && self.server_name == other.server_name
            && self.proxy == other.proxy
            && self.protocol == other.protocol
    }
}
