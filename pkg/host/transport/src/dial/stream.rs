//! [`Duplex`]: bytes to a server and back, in the clear or inside TLS.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite};
use tokio::task::yield_now;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::{DialError, broken_handshake};
use super::handshakes::apart;

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

#[cfg(test)]
mod tests;
