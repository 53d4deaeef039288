//! [`Duplex`]: bytes to a server and back, in the clear or inside TLS.

use std::sync::Arc;

use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
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
    made.and_then(|made| made).map_err(broken_handshake)
}

/// The name that the certificate of the host of `uri` must have.
pub(super) fn server_name(uri: &Uri) -> Result<ServerName<'static>, DialError> {
    let host = uri.host().ok_or(DialError::NoHost)?.trim_matches(['[', ']']);
    ServerName::try_from(host.to_owned()).map_err(|_| DialError::NoHost)
}

#[cfg(test)]
mod tests;
