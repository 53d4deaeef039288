//! One connection, opened phase by phase, for a prober that says where it hangs and what broke.
//! [`crate::open`] is for everybody else.

mod error;
mod stream;

use std::future::Ready;
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use tower::Service as _;

use crate::certificates::{Validity, validity};
use crate::dial::error::{refused, unresolved};
use crate::dial::stream::{secure, server_name, tunnel};
use crate::endpoint::Endpoint;
use crate::names::Asker;
use crate::resolver::{Resolver, Unresolved, literal};
use crate::wire::tcp_by;

pub use error::{DialError, ProxyFault};
pub use stream::Duplex;

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
    /// For requests and answers.
    pub stream: Box<dyn Duplex>,
    /// When the certificate that the server showed is valid; none without TLS.
    pub certificate: Option<Validity>,
}

/// Where connections lead to, and for whom they are opened.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// Gives the addresses of hosts.
    pub resolver: &'a Resolver,
    /// Asks for them.
    pub asker: &'a Asker,
}

/// Opens a connection to `server`, an absolute URI, and tells `entered` what it does. Addresses of
/// one name that do not answer get equal shares of `limit`; the caller ends the whole thing.
///
/// # Errors
/// What broke.
pub async fn dial(
    endpoint: &Endpoint,
    server: &Uri,
    way: Way<'_>,
    limit: Duration,
    entered: &mut (dyn FnMut(Phase) + Send),
) -> Result<Dialed, DialError> {
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
    let certificate = stream.get_ref().1.peer_certificates();
    let certificate = certificate.and_then(|chain| validity(chain.first()?));
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
    let resolve = move |_: Name| -> Ready<Result<_, std::convert::Infallible>> {
        std::future::ready(Ok(found.clone().into_iter()))
    };
    let connector = HttpConnector::new_with_resolver(tower::service_fn(resolve));
    let mut connector = tcp_by(connector);
    connector.set_connect_timeout(Some(limit));
    let mut unreachable = ForgetUnreachable { resolver: way.resolver, host, is_connected: false };
    let stream = connector.call(hop.clone()).await.map_err(|error| refused(&error))?;
    unreachable.is_connected = true;
    Ok(stream.into_inner())
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
