//! One connection, opened phase by phase, for a prober that says where it hangs and what broke; and
//! [`Duplex`], its bytes in the clear or inside TLS. [`crate::open`] is for everybody else.

mod tls_stream;

use std::cell::Cell;
use std::future::{Ready, poll_fn};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::Poll;
use std::thread::available_parallelism;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinSet, yield_now};
use tower::{Service as _, ServiceExt as _};

use crate::certificates::{Validity, validity};
use crate::dial::tls_stream::TlsStream;
use crate::endpoint::{Endpoint, Kind, Proxy};
use crate::error::{DialError, ProxyFault, broken_handshake, refused, unresolved};
use crate::names::Asker;
use crate::resolver::{Resolver, Unresolved, literal};
use crate::wire::tcp_by;

/// The phase of a connection that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Asking for the addresses of the host, or of the proxy.
    Resolve,
    /// The handshake of TCP.
    Connect,
    /// Asking the proxy for a tunnel, with a TLS handshake if it speaks TLS.
    Proxy,
    /// The TLS handshake with the server.
    Tls,
}

/// An open connection.
pub struct Dialed {
    /// The open connection.
    pub stream: Box<dyn Duplex>,
    /// When the certificate that the server showed is valid; none without TLS.
    pub certificate: Option<Validity>,
}

/// Opens a connection to a server, an absolute URI, in a simulation.
pub type Dialer = fn(&Uri) -> BoxFuture<'static, io::Result<Box<dyn Duplex>>>;

thread_local! {
    static DIALER: Cell<Option<Dialer>> = const { Cell::new(None) };
}

/// From now on [`dial`] opens the connections of this thread by `dialer`, without TCP and TLS.
pub fn dial_by(dialer: Option<Dialer>) {
    DIALER.set(dialer);
}

/// Where connections lead to, and for whom they are opened.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// Gives the addresses of hosts.
    pub resolver: &'a Resolver,
    /// The asker of these addresses.
    pub asker: &'a Asker,
}

/// Opens a connection to `server`, an absolute URI, and reports each phase to `entered`. Addresses of one name that do
/// not answer get equal shares of `limit`; the caller ends the whole thing.
pub async fn dial(
    endpoint: &Endpoint,
    server: &Uri,
    way: Way<'_>,
    limit: Duration,
    entered: &mut (dyn FnMut(Phase) + Send),
) -> Result<Dialed, DialError> {
    if let Some(dialer) = DIALER.get() {
        entered(Phase::Connect);
        let stream = dialer(server).await.map_err(DialError::Connect)?;
        return Ok(Dialed { stream, certificate: None });
    }
    let stream: Box<dyn Duplex> = match &endpoint.proxy {
        None => Box::new(connect(server, way, limit, entered).await?),
        Some(proxy) => {
            // A name is looked up by the proxy.
            let host = server.host().ok_or(DialError::NoHost)?;
            if way.resolver.denies_literal(host, port(server)) {
                return Err(DialError::Denied);
            }
            let hop = proxy.uri();
            let tcp = connect(&hop, way, limit, entered).await.map_err(DialError::of_proxy)?;
            entered(Phase::Proxy);
            tunnel(endpoint, proxy, server, tcp).await.map_err(DialError::Proxy)?
        }
    };
    if server.scheme_str() != Some("https") {
        return Ok(Dialed { stream, certificate: None });
    }
    entered(Phase::Tls);
    let name = match &endpoint.server_name {
        Some(name) => name.clone(),
        None => server_name(server)?,
    };
    let stream = secure(&endpoint.tls, name, stream).await?;
    let certificate = stream.certificates().and_then(|chain| validity(chain.first()?));
    Ok(Dialed { stream: Box::new(stream), certificate })
}

fn port(uri: &Uri) -> u16 {
    let default = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    uri.port_u16().unwrap_or(default)
}

async fn connect(
    hop: &Uri,
    way: Way<'_>,
    limit: Duration,
    entered: &mut (dyn FnMut(Phase) + Send),
) -> Result<tokio::net::TcpStream, DialError> {
    let host = hop.host().ok_or(DialError::NoHost)?;
    if literal(host).is_none() {
        entered(Phase::Resolve);
    }
    let found = way.resolver.addresses(host, port(hop), way.asker).await;
    let found = found.map_err(|error| match error {
        Unresolved::Unknown(error) => unresolved(error),
        Unresolved::Denied => DialError::Denied,
    })?;
    entered(Phase::Connect);
    let (found, has_source) = dialable(found, has_source);
    let resolve = move |_: Name| -> Ready<Result<_, std::convert::Infallible>> {
        std::future::ready(Ok(found.clone().into_iter()))
    };
    let connector = HttpConnector::new_with_resolver(tower::service_fn(resolve));
    let mut connector = tcp_by(connector);
    connector.set_connect_timeout(Some(limit));
    let mut unreachable = ForgetUnreachable { resolver: way.resolver, host, is_connected: false };
    let stream = connector.call(hop.clone()).await.map_err(|error| refused(&error, has_source))?;
    unreachable.is_connected = true;
    Ok(stream.into_inner())
}

/// The addresses of a host that this machine has an address to dial from, or all of them if there are none, and
/// whether there are some. The error of an IPv6 address on a machine without IPv6 must not hide that of an IPv4 address.
fn dialable(
    found: Vec<SocketAddr>,
    has_source: impl Fn(&SocketAddr) -> bool,
) -> (Vec<SocketAddr>, bool) {
    let dialable: Vec<_> = found.iter().copied().filter(has_source).collect();
    if dialable.is_empty() { (found, false) } else { (dialable, true) }
}

/// Whether this machine has an address from which packets to `server` can be sent. Sends none.
fn has_source(server: &SocketAddr) -> bool {
    if server.is_ipv4() {
        return true;
    }
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
    let connected = socket.and_then(|socket| socket.connect(server));
    !connected.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// Forgets the addresses of a host that could not be reached, also when the caller gives up first.
struct ForgetUnreachable<'a> {
    resolver: &'a Resolver,
    host: &'a str,
    is_connected: bool,
}

impl Drop for ForgetUnreachable<'_> {
    fn drop(&mut self) {
        if !self.is_connected {
            self.resolver.forget(self.host);
        }
    }
}

/// Bytes to a server and back.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Speaks TLS with the server of this `name`. The handshake is made on threads of its own.
async fn secure<S: Duplex + 'static>(
    tls: &Arc<ClientConfig>,
    name: ServerName<'static>,
    stream: S,
) -> Result<TlsStream<S>, DialError> {
    let tls = Arc::clone(tls);
    let made = apart(async move { TlsStream::connect(&tls, name, stream).await }).await;
    let mut made = made.and_then(|made| made).map_err(broken_handshake)?;
    // In TLS 1.3 the client is done before the server has judged its certificate. A refusal that is
    // here already is told as such: after a request the kernel would drop it with the connection.
    yield_now().await;
    // An end of the connection is told by the request that meets it.
    let refused = poll_fn(|context| match made.poll_alert(context) {
        Poll::Ready(error) => Poll::Ready(Some(error)),
        Poll::Pending => Poll::Ready(None),
    });
    match refused.await {
        Some(error) => Err(broken_handshake(error)),
        None => Ok(made),
    }
}

/// The name that the certificate of the host of `uri` must have.
pub(super) fn server_name(uri: &Uri) -> Result<ServerName<'static>, DialError> {
    let host = uri.host().ok_or(DialError::NoHost)?.trim_matches(['[', ']']);
    ServerName::try_from(host.to_owned()).map_err(|_| DialError::NoHost)
}

/// On a machine with as many cores: thousands of members are reached at the start.
const THREADS: usize = 4;

/// Begins with the first handshake and then stays.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// Runs a handshake on those threads. Dropped, it ends the handshake.
pub(super) async fn apart<T: Send + 'static>(
    handshake: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let mut task = JoinSet::new();
    task.spawn_on(handshake, &handle()?);
    match task.join_next().await {
        Some(Ok(outcome)) => Ok(outcome),
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        Some(Err(_)) | None => Err(io::Error::other("the process ends")),
    }
}

fn handle() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock();
    if let Some(runtime) = &*runtime {
        return Ok(runtime.handle().clone());
    }
    let cores = available_parallelism().map_or(1, NonZero::get);
    // Sockets and clocks stay with the runtime that opened them.
    let made = Builder::new_multi_thread()
        .worker_threads(cores.min(THREADS))
        .thread_name("handshakes")
        .build()?;
    Ok(runtime.insert(made).handle().clone())
}

pub(super) async fn tunnel(
    endpoint: &Endpoint,
    proxy: &Proxy,
    server: &Uri,
    tcp: TcpStream,
) -> Result<Box<dyn Duplex>, ProxyFault> {
    let to_proxy: Box<dyn Duplex> = match proxy.kind() {
        Some(Kind::Https) => {
            let tls = endpoint.proxy_tls.as_ref().unwrap_or(&endpoint.tls);
            let name = server_name(&proxy.uri()).map_err(|_| ProxyFault::NoHost)?;
            Box::new(secure(tls, name, tcp).await.map_err(ProxyFault::of_tls)?)
        }
        Some(Kind::Http | Kind::Socks5) | None => Box::new(tcp),
    };
    let mut open = Some(TokioIo::new(to_proxy));
    let once = tower::service_fn(move |_: Uri| {
        let open = open.take().ok_or_else(|| std::io::Error::other("taken twice"));
        std::future::ready(open)
    });
    let tunnelled = if proxy.kind() == Some(Kind::Socks5) {
        let mut socks = SocksV5::new(proxy.uri(), once);
        if let Some((user, password)) = proxy.login() {
            socks = socks.with_auth(user, password);
        }
        socks.call(server.clone()).await.map_err(|error| ProxyFault::refused(&error))?
    } else {
        let mut http = Tunnel::new(proxy.uri(), once);
        if let Some(login) = proxy.basic_auth() {
            http = http.with_auth(login);
        }
        http.ready().await.map_err(|error| ProxyFault::refused(&error))?;
        http.call(server.clone()).await.map_err(|error| ProxyFault::refused(&error))?
    };
    Ok(tunnelled.into_inner())
}

#[cfg(test)]
mod tests;
