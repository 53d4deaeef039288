//! One TCP connection to a target of an object, within its time.

use std::io;
use std::time::Duration;

use health::Code;
use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::{Unresolved, Way};

/// Longest time for all addresses of a target together.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// Opens a connection to `host:port`, IPv6 in brackets.
///
/// # Errors
/// A code.
pub(super) async fn open(
    target: &str,
    way: Way<'_>,
    limit: Duration,
) -> Result<TcpStream, &'static str> {
    timeout(limit, any(target, way)).await.unwrap_or(Err("connect-timeout"))
}

/// The first of its addresses that may be dialled and takes a connection.
async fn any(target: &str, way: Way<'_>) -> Result<TcpStream, &'static str> {
    let (host, port) = target.rsplit_once(':').ok_or("bad-endpoint")?;
    let port: u16 = port.parse().map_err(|_| "bad-endpoint")?;
    let addresses = way.resolver.addresses(host, port, way.asker).await;
    let addresses = addresses.map_err(|error| match error {
        Unresolved::Unknown(_) => "dns",
        Unresolved::Denied => Code::AddressDenied.label(),
    })?;
    let mut code = "dns";
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => code = code_of(error.kind()),
        }
    }
    Err(code)
}

fn code_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "connect-refused",
        io::ErrorKind::TimedOut => "connect-timeout",
        io::ErrorKind::ConnectionReset => "reset",
        _ => "connect-failed",
    }
}
