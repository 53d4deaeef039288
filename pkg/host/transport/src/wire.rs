//! The wire: TCP, proxy, TLS and HTTP to one endpoint, behind one pool of connections.
//!
//! kube's own connector speaks HTTP/1.1 without any way to notice a silent server; a request on a
//! warm connection to a frozen one hung without an end. This one speaks HTTP/2 with pings, and lets the kernel give up on data that the peer does not acknowledge
//! (`rule:dead-connections-are-noticed`). HTTP/2 is `multiplexed`, HTTP/1.1 is hyper's client.

mod channel;
mod exchange;
mod keep_alive;
mod multiplexed;
mod pending_sends;

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_rustls::{
    DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, MaybeHttpsStream,
    ResolveServerName,
};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};

use crate::endpoint::{Endpoint, Kind, Proxy};
use crate::tls::Protocol;
use crate::wire::exchange::RequestBody;
use crate::wire::keep_alive::{PING_INTERVAL, PING_TIMEOUT};
use crate::wire::multiplexed::Multiplexed;

pub use exchange::{AnswerBody, Answering, Wire, WireError};
pub use keep_alive::rest_if_busy;
pub use pending_sends::SendPermit;

const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a pool for `endpoint`. No network yet; connections live on the runtime of the request
/// that needs them first.
pub fn open(endpoint: &Endpoint) -> Wire {
    let resolver: Arc<dyn ResolveServerName + Send + Sync> = match &endpoint.server_name {
        Some(name) => Arc::new(FixedServerNameResolver::new(name.clone())),
        None => Arc::new(DefaultServerNameResolver::default()),
    };
    let https = HttpsConnector::new(route(endpoint), Arc::clone(&endpoint.tls), false, resolver);
    let mut connector = TimeoutConnector::new(https);
    connector.set_connect_timeout(Some(endpoint.connect_timeout));
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    builder
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(Some(PING_INTERVAL))
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true);
    let single = builder.build::<_, RequestBody>(connector.clone());
    match endpoint.protocol {
        Protocol::Negotiated => Wire::over(Multiplexed::new(connector, single)),
        Protocol::Http1 | Protocol::Slim => Wire::over(single),
    }
}

/// Makes connections to a server, whichever way. One type for all ways: each would be another copy
/// of HTTP and TLS in the program.
type Route = BoxCloneSyncService<Uri, Stretch, BoxError>;

/// The way as far as TLS with the server: TCP, or TLS with a proxy.
type Stretch = MaybeHttpsStream<TokioIo<TcpStream>>;

fn route(endpoint: &Endpoint) -> Route {
    let proxy = endpoint.proxy.as_ref().and_then(|proxy| Some((proxy, proxy.kind()?)));
    match proxy {
        None => of_any(tcp()),
        Some((proxy, Kind::Http)) => of_any(tunnel(proxy, tcp())),
        Some((proxy, Kind::Https)) => {
            let tls = endpoint.proxy_tls.as_ref().unwrap_or(&endpoint.tls);
            let resolver = Arc::new(DefaultServerNameResolver::default());
            let inner = HttpsConnector::new(tcp(), Arc::clone(tls), true, resolver);
            of_any(tunnel(proxy, inner))
        }
        Some((proxy, Kind::Socks5)) => {
            let socks = SocksV5::new(proxy.uri(), tcp());
            match proxy.login() {
                Some((user, password)) => of_any(socks.with_auth(user, password)),
                None => of_any(socks),
            }
        }
    }
}

fn of_any<C>(connector: C) -> Route
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Into<Stretch>,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let connector = connector.map_response(Into::<Stretch>::into);
    Route::new(connector.map_err(Into::<BoxError>::into))
}

fn tcp() -> HttpConnector {
    tcp_by(HttpConnector::new())
}

/// `tcp` with the settings that all our connections have.
pub(crate) fn tcp_by<R>(mut tcp: HttpConnector<R>) -> HttpConnector<R> {
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
    tcp
}

fn tunnel<H>(proxy: &Proxy, inner: H) -> Tunnel<H> {
    let tunnel = Tunnel::new(proxy.uri(), inner);
    match proxy.basic_auth() {
        Some(login) => tunnel.with_auth(login),
        None => tunnel,
    }
}
