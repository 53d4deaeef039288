//! Where a server is reached and what is trusted there.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::tls::{ClientCertificate, Protocol, TlsConfigs, TlsError, Trust};

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

/// The address of a proxy cannot be used. Never quotes it: it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its address must be http://, https:// or socks5://[user:password@]host:port")]
pub struct ProxyError;

/// A proxy, with the credentials that its address holds, which its printed form leaves out.
#[derive(Clone)]
pub struct Proxy(Intercept);

/// How a proxy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `CONNECT` in plain HTTP.
    Http,
    /// `CONNECT` inside TLS.
    Https,
    Socks5,
}

impl Proxy {
    /// The proxy at `address`; without a scheme it is an HTTP proxy.
    pub fn parse(address: &str) -> Result<Self, ProxyError> {
        let matcher = Matcher::builder().all(with_scheme(address)).build();
        let proxy = matcher.intercept(&Uri::from_static("https://server")).map(Self);
        proxy.filter(|proxy| proxy.kind().is_some()).ok_or(ProxyError)
    }

    /// The proxy for `server` that the environment names, read through `env`.
    pub fn from_environment(
        server: &Uri,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ProxyError> {
        let either = |upper: &str, lower: &str| {
            [upper, lower].iter().find_map(|name| env(name).filter(|value| !value.is_empty()))
        };
        let Some(host) = server.host().filter(|_| server.scheme_str() == Some("https")) else {
            return Ok(None);
        };
        let Some(address) = either("HTTPS_PROXY", "https_proxy") else { return Ok(None) };
        let exceptions = either("NO_PROXY", "no_proxy").unwrap_or_default();
        let exceptions = for_port(&exceptions, server.port_u16().unwrap_or(443));
        let matcher = Matcher::builder().https(with_scheme(&address)).no(exceptions).build();
        // Read first: an address that cannot be used is a mistake also where it is not needed.
        let proxy = Self::parse(&address)?;
        Ok(Some(proxy).filter(|_| !is_loopback(host) && matcher.intercept(server).is_some()))
    }

    /// Whether it is an `https://` proxy, which shows a certificate.
    pub fn speaks_tls(&self) -> bool {
        self.kind() == Some(Kind::Https)
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.0.uri().scheme_str()? {
            "http" => Some(Kind::Http),
            "https" => Some(Kind::Https),
            "socks5" | "socks5h" => Some(Kind::Socks5),
            _ => None,
        }
    }

    pub(crate) fn uri(&self) -> Uri {
        self.0.uri().clone()
    }

    /// For `Proxy-Authorization`.
    pub(crate) fn basic_auth(&self) -> Option<HeaderValue> {
        self.0.basic_auth().cloned()
    }

    /// User and password for SOCKS.
    pub(crate) fn login(&self) -> Option<(String, String)> {
        self.0.raw_auth().map(|(user, password)| (user.to_owned(), password.to_owned()))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.0.uri().host().unwrap_or_default())
    }
}

impl PartialEq for Proxy {
    fn eq(&self, other: &Self) -> bool {
        self.0.uri() == other.0.uri()
            && self.0.basic_auth() == other.0.basic_auth()
            && self.0.raw_auth() == other.0.raw_auth()
    }
}

fn with_scheme(address: &str) -> String {
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

fn is_loopback(host: &str) -> bool {
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The entries of `NO_PROXY` that count for a server at `port`, without their own ports.
fn for_port(exceptions: &str, port: u16) -> String {
    let entries = exceptions.split(',').map(str::trim);
    let counting = entries.filter_map(|entry| {
        let (name, wanted) = split_port(entry);
        let name = name.strip_prefix("*.").unwrap_or(name).trim_matches(['[', ']']);
        wanted.is_none_or(|wanted| wanted == port).then_some(name)
    });
    counting.collect::<Vec<_>>().join(",")
}

/// `name:port`, where an IPv6 address has no port unless it is in brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests;
