//! The wire: TCP, TLS and HTTP to one API server. Built by `access`, used by `dispatch`.
//!
//! kube's own connector speaks HTTP/1.1 without any way to notice a silent server; a request on a
//! warm connection to a frozen one hung for as long as somebody watched. This one speaks HTTP/2
//! with pings, and lets the kernel give up on data that nobody acknowledges (`rule:dead-connections-are-noticed`).

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Uri};
use http_body::Body;
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::legacy::{self, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt as _;
use tower::{BoxError, Service};

use crate::error::ConfigError;

/// TCP and TLS handshake together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Stock's read-idle and ping timeouts.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Which HTTP a pool of connections speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/2 where the server offers it: all requests share one connection.
    Negotiated,
    /// HTTP/1.1, where a request that fails or is given up takes its connection with it, so that
    /// the next one starts on a fresh one. That is what the lease needs.
    Http1,
}

/// Sends requests with bodies of `B` through one pool of connections.
pub(crate) trait Wire<B>: Send + Sync {
    /// Sends one request. Giving up the future gives up the request.
    fn send(&self, request: Request<B>) -> ResponseFuture;
}

impl<C, B> Wire<B> for legacy::Client<C, B>
where
    C: legacy::connect::Connect + Clone + Send + Sync + 'static,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    fn send(&self, request: Request<B>) -> ResponseFuture {
        self.request(request)
    }
}

/// Opens a pool for the server, trust and client certificate of `config`. No network yet.
pub(crate) fn open<B>(
    config: &kube::Config,
    protocol: Protocol,
) -> Result<Arc<dyn Wire<B>>, ConfigError>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));

    let Some(proxy) = config.proxy_url.clone() else { return pool(config, tcp, protocol) };
    if proxy.authority().is_some_and(|a| a.as_str().contains('@')) {
        return Err(ConfigError::Proxy {
            reason: "user names in proxy addresses are not supported",
        });
    }
    match proxy.scheme_str() {
        Some("http") => pool(config, Tunnel::new(proxy, tcp), protocol),
        Some("socks5") => pool(config, SocksV5::new(proxy, tcp), protocol),
        _ => Err(ConfigError::Proxy { reason: "its scheme must be http or socks5" }),
    }
}

fn pool<H, B>(
    config: &kube::Config,
    tcp: H,
    protocol: Protocol,
) -> Result<Arc<dyn Wire<B>>, ConfigError>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    H: Service<Uri> + Clone + Send + Sync + 'static,
    H::Response: Read + Write + Connection + Send + Unpin + 'static,
    H::Future: Send + 'static,
    H::Error: Into<BoxError>,
{
    let tls = config.rustls_client_config().map_err(|e| ConfigError::credentials(&e))?;
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|_| ConfigError::ServerName(name.clone()))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let https = match protocol {
        Protocol::Negotiated => https.enable_all_versions().wrap_connector(tcp),
        Protocol::Http1 => https.enable_http1().wrap_connector(tcp),
    };
    let mut connector = TimeoutConnector::new(https);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    Ok(Arc::new(
        legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(Some(PING_INTERVAL))
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .build::<_, B>(connector),
    ))
}
