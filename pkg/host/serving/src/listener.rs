//! The listening socket, dual-stack where the address asks for all families.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::{ListenerOptions, ServeError};

/// As kube-controller-manager.
const KEEPALIVE: Duration = Duration::from_secs(180);
const BACKLOG: i32 = 1024;

/// A socket, and its address with the real port.
pub(crate) type Bound = (TcpListener, SocketAddr);

/// Binds what the options ask for, at one port, which a 0 leaves to the first.
pub(crate) fn listen(options: &ListenerOptions) -> Result<Vec<Bound>, ServeError> {
    let mut port = options.port;
    let mut sockets = Vec::new();
    for address in options.addresses() {
        let socket = bind(options, SocketAddr::new(address, port))?;
        port = socket.1.port();
        sockets.push(socket);
    }
    Ok(sockets)
}

/// An unspecified address of either family means every address of the host; a host without IPv6
/// gets the IPv4 ones.
fn bind(options: &ListenerOptions, asked: SocketAddr) -> Result<Bound, ServeError> {
    let (share, port_flag) = (options.permit_port_sharing, options.port_flag);
    let outcome = if asked.ip().is_unspecified() {
        match open(any(Ipv6Addr::UNSPECIFIED, asked.port()), share) {
            Err(error) if no_ipv6(&error) => open(any(Ipv4Addr::UNSPECIFIED, asked.port()), share),
            other => other,
        }
    } else {
        open(asked, share)
    };
    let bound = outcome.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|why| match why.kind() {
        io::ErrorKind::AddrInUse => ServeError::AddressInUse { address: asked, port_flag },
        _ => ServeError::Listen { address: asked, port_flag, why },
    })?;
    Ok((listener, address))
}

/// Notices peers that vanished without a word, and sends small answers at once. A refusal by the
/// system costs only these two comforts.
pub(crate) fn tune(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(stream).set_tcp_keepalive(&keepalive).ok();
    stream.set_nodelay(true).ok();
}

fn any(ip: impl Into<IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(ip.into(), port)
}

fn open(address: SocketAddr, share_port: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        socket.set_only_v6(false)?;
    }
    // A restart must not wait for old connections in TIME_WAIT. On Linux this does not let two
    // listeners share the port.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share_port)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// The kernel has no IPv6, or it is switched off on every interface.
fn no_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}
