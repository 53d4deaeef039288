//! The wire: TCP, proxy, TLS and HTTP to one endpoint, behind one pool of connections.
//!
//! kube's own connector speaks HTTP/1.1 without any way to notice a silent server; a request on a
//! warm connection to a frozen one hung without an end. This one speaks HTTP/2 with
//! pings, and lets the kernel give up on data that the peer does not acknowledge
//! (`rule:dead-connections-are-noticed`). HTTP/2 is `multiplexed`, HTTP/1.1 is hyper's client.
//! [`retry_after`] and [`sensitive_header`] read and make headers for all clients.

mod channel;
mod exchange;
mod keep_alive;
mod multiplexed;
mod pending_sends;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Uri};
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
use zeroize::{Zeroize as _, Zeroizing};

use crate::endpoint::{Endpoint, Kind, Proxy};
use crate::tls::Protocol;
use crate::wire::keep_alive::{PING_INTERVAL, PING_TIMEOUT};
use crate::wire::multiplexed::Multiplexed;

pub use exchange::{AnswerBody, Answering, RequestBody, Wire, WireError};
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

/// The longest time that is believed.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// `Retry-After` in whole seconds, the only form that the API server uses and client-go reads, cut
/// to [`RETRY_AFTER_MAX`]. `None` when the header is missing or written in another way.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Too many digits for a number are a very long time.
    Some(text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs).min(RETRY_AFTER_MAX))
}

/// A header value of these parts, marked as sensitive, in one buffer of its final size. The buffer
/// is overwritten when the last clone of the value is dropped. `None` if a header cannot hold it.
pub fn sensitive_header(parts: &[&str]) -> Option<HeaderValue> {
    let text = Zeroizing::new(parts.concat().into_bytes());
    let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(text)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Overwrites a body that has no other holder.
pub fn wipe(body: Bytes) {
    if let Ok(mut body) = body.try_into_mut() {
        body.as_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_is_read_in_whole_seconds_only_and_believed_for_a_minute() {
        for (text, expected) in [
            ("7", Some(Duration::from_secs(7))),
            (" 7 ", Some(Duration::from_secs(7))),
            ("0", Some(Duration::ZERO)),
            ("60", Some(RETRY_AFTER_MAX)),
            ("3600", Some(RETRY_AFTER_MAX)),
            ("99999999999999999999999", Some(RETRY_AFTER_MAX)),
            ("1.5", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            assert_eq!(retry_after(&headers), expected, "{text:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
