//! One TCP connection to a target of an object, within its time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::Names;

use super::DialPolicy;

/// Longest time for all addresses of a target together.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// It may not be dialled.
pub(super) const DENIED: &str = "address-denied";

/// Opens a connection to `host:port`, IPv6 in brackets.
///
/// # Errors
/// A code.
pub(super) async fn open(
    target: &str,
    policy: &DialPolicy,
    names: &Names,
    limit: Duration,
) -> Result<TcpStream, &'static str> {
    timeout(limit, any(target, policy, names)).await.unwrap_or(Err("connect-timeout"))
}

/// The first of its addresses that takes one. None is dialled if one of them may not be.
async fn any(target: &str, policy: &DialPolicy, names: &Names) -> Result<TcpStream, &'static str> {
    let addresses = addresses(target, names).await?;
    if !addresses.iter().all(|address| policy.permits(*address)) {
        return Err(DENIED);
    }
    let mut code = "dns";
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => code = code_of(error.kind()),
        }
    }
    Err(code)
}

pub(super) async fn addresses(
    target: &str,
    names: &Names,
) -> Result<Vec<SocketAddr>, &'static str> {
    let (host, port) = target.rsplit_once(':').ok_or("bad-endpoint")?;
    let port: u16 = port.parse().map_err(|_| "bad-endpoint")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = names.addresses(bare).await.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => DENIED,
        _ => "dns",
    })?;
    Ok(found.iter().map(|&address| SocketAddr::new(address, port)).collect())
}

fn code_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "connect-refused",
        io::ErrorKind::TimedOut => "connect-timeout",
        io::ErrorKind::ConnectionReset => "reset",
        _ => "connect-failed",
    }
}
