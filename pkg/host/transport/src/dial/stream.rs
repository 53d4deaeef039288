//! [`Duplex`]: bytes to a server and back, in the clear or inside TLS.

use std::future::poll_fn;
use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::available_parallelism;

use http::Uri;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinSet, yield_now};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::{Service as _, ServiceExt as _};

use crate::dial::error::{DialError, ProxyFault, broken_handshake};
use crate::endpoint::{Endpoint, Kind, Proxy};

/// Bytes to a server and back.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Speaks TLS with the server of this `name`. The handshake is made on threads of its own.
pub(super) async fn secure<S: Duplex + 'static>(
    tls: &Arc<ClientConfig>,
    name: ServerName<'static>,
    stream: S,
) -> Result<TlsStream<S>, DialError> {
    let connector = TlsConnector::from(Arc::clone(tls));
    let made = apart(async move { connector.connect(name, stream).await }).await;
    let mut made = made.and_then(|made| made).map_err(broken_handshake)?;
    // In TLS 1.3 the client is done before the server has judged its certificate. A refusal that is
    // here already is told as such: after a request the kernel would drop it with the connection.
    yield_now().await;
    let refused = poll_fn(|context| match Pin::new(&mut made).poll_fill_buf(context) {
        // An alert. An end of the connection is told by the request that meets it.
        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            Poll::Ready(Some(error))
        }
        Poll::Ready(_) | Poll::Pending => Poll::Ready(None),
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
///
/// # Errors
/// No thread can be started.
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
