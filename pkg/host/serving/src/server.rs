//! One listener: its sockets and certificate from the start, its pages and connections while it
//! serves, an orderly end. A process has one for the secure port and may have one for webhooks.
//!
//! Connections from this host are always accepted, those from other hosts as many as there is room
//! for, so that no flood keeps a probe of `/livez` or a scraper waiting.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use prometheus::IntCounter;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

use crate::connection::Connections;
use crate::guard::{Clients, SharedGuard};
use crate::reloader::Reloader;
use crate::sources::{Activity, Bounds, Sources};
use crate::{Guard, ListenerOptions, Pages, ServeError, ServingMetrics, reloader};

/// How long open requests may take after the stop.
const DRAIN: Duration = Duration::from_secs(2);

/// Bound sockets with their certificate, ready to serve.
pub struct Server {
    name: &'static str,
    sockets: Vec<Bound>,
    tls: rustls::ServerConfig,
    clients: Clients,
    reloader: Reloader,
    http2_max_streams: u32,
}

impl Server {
    /// Binds the sockets, then loads or makes the certificate. Peers that connect before
    /// [`Server::serve`] wait in the kernel's queue.
    pub async fn bind(options: &ListenerOptions) -> Result<Self, ServeError> {
        let sockets = listen(options)?;
        let clients = Clients::of(&options.client_certificates).await?;
        let addresses = options.addresses().collect();
        let reloader = Reloader::load(
            &options.certificate,
            &options.named_certificates,
            addresses,
            clients.ca(),
        )
        .await?;
        let http2 = !options.disable_http2;
        let tls = options.tls.server_config(reloader.certificates(), clients.are_asked(), http2)?;
        let (name, http2_max_streams) = (options.name, options.http2_max_streams);
        Ok(Self { name, sockets, tls, clients, reloader, http2_max_streams })
    }

    /// Checks that [`Server::bind`] would succeed now. Sockets are given up at once, and nothing
    /// is written.
    pub async fn obstacles(options: &ListenerOptions) -> Vec<ServeError> {
        let files = reloader::readable(&options.certificate, &options.named_certificates).await;
        let sockets = listen(options).map(drop);
        [files, sockets].into_iter().filter_map(Result::err).collect()
    }

    /// Where it listens, with the real port.
    pub fn local_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().map(|(_, address)| *address)
    }

    /// Serves `pages` to whom `guard` lets pass, until `stop`; then lets open requests finish for
    /// at most 2 seconds.
    pub async fn serve(
        self,
        pages: Pages,
        guard: Arc<dyn Guard>,
        metrics: &ServingMetrics,
        stop: CancellationToken,
    ) {
        let metrics = metrics.of(self.name);
        // Cancelled when this future ends or is dropped: no connection outlives its server.
        let end = CancellationToken::new();
        let _end = end.clone().drop_guard();
        let open = TaskTracker::new();
        let rejected = metrics.rejected.clone();
        let connections = Arc::new(Connections {
            pages,
            acceptor: Arc::new(self.tls).into(),
            guard: SharedGuard::new(guard),
            clients: self.clients,
            max_streams: self.http2_max_streams,
            metrics,
            stop: stop.clone(),
        });
        let admission = Admission::new(connections, open.clone(), end, rejected);
        let mut accepting = JoinSet::new();
        for (socket, address) in self.sockets {
            info!(logger = "serving", listener = self.name, "Serving securely on {address}");
            let acceptor = Acceptor::new(socket, admission.clone());
            accepting.spawn(async move { acceptor.run().await });
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(Err(err)) = accepting.join_next() => {
                error!(logger = "serving", %err, "Accepting connections ended with an error");
            }
            () = self.reloader.run() => {}
        }
        accepting.shutdown().await;
        open.close();
        if timeout(DRAIN, open.wait()).await.is_err() {
            warn!(
                logger = "serving",
                listener = self.name,
                connections = open.len(),
                "Closing connections that did not finish in time"
            );
        }
    }
}

/// Connections from other hosts. Probes and scrapers need a handful; a flood must cost us no memory.
const REMOTE: Bounds = Bounds { of_all: 256, of_one_source: 32, newest_wins: false };
/// Connections from this host, where the kubelet probes.
const SAME_HOST: Bounds = Bounds { of_all: 2048, of_one_source: 2048, newest_wins: true };
/// Pause after the system refused a connection: it is out of file descriptors, and asking again
/// at once would only burn CPU.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// The bounds on connections. Clones share them, one for each socket of a server.
#[derive(Clone)]
pub(crate) struct Admission {
    connections: Arc<Connections>,
    open: TaskTracker,
    end: CancellationToken,
    remote: Arc<Sources>,
    same_host: Arc<Sources>,
    rejected: IntCounter,
}

/// Owner of a listening socket.
pub(crate) struct Acceptor {
    listener: TcpListener,
    admission: Admission,
}

impl Admission {
    /// Connections run on `open`, until `end` at the longest.
    pub(crate) fn new(
        connections: Arc<Connections>,
        open: TaskTracker,
        end: CancellationToken,
        rejected: IntCounter,
    ) -> Self {
        let (remote, same_host) = (Sources::new(REMOTE), Sources::new(SAME_HOST));
        Self { connections, open, end, remote, same_host, rejected }
    }

    /// Starts to serve the peer, or closes its connection. Never waits: whoever comes next may be
    /// the kubelet. `own` is the address at our end.
    fn admit(&self, stream: TcpStream, peer: IpAddr, own: IpAddr) {
        let sources = if is_same_host(peer, own) { &self.same_host } else { &self.remote };
        let activity = Activity::new();
        let Some((place, has_evicted)) = sources.enter(peer, Arc::clone(&activity)) else {
            self.rejected.inc();
            debug!(v = 5, logger = "serving", %peer, "Too many connections, closing this one");
            return;
        };
        if has_evicted {
            self.rejected.inc();
            debug!(v = 5, logger = "serving", %peer, "Too many connections, closing an older one");
        }
        tune(&stream);
        let (connections, end) = (self.connections.clone(), self.end.clone());
        self.open.spawn(async move {
            let served = Box::pin(connections.serve(stream, peer, activity));
            end.run_until_cancelled(place.hold(served)).await;
        });
    }
}

impl Acceptor {
    pub(crate) fn new(listener: TcpListener, admission: Admission) -> Self {
        Self { listener, admission }
    }

    /// Accepts connections until it is dropped.
    pub(crate) async fn run(&self) {
        loop {
            let (stream, peer) = self.accept().await;
            // A connection without an address of ours has ended already.
            if let Ok(own) = stream.local_addr() {
                self.admission.admit(stream, peer, own.ip());
            }
        }
    }

    async fn accept(&self) -> (TcpStream, IpAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => return (stream, peer.ip()),
                // The peer gave up before we came to it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(err) => {
                    warn!(logger = "serving", %err, "Cannot accept connection");
                    sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }
}

/// The kubelet probes a pod on the host network at the address of the host, so that both ends have
/// the same one.
fn is_same_host(peer: IpAddr, own: IpAddr) -> bool {
    let peer = peer.to_canonical();
    peer.is_loopback() || peer == own.to_canonical()
}

/// The backlog of kube-controller-manager.
const KEEPALIVE: Duration = Duration::from_secs(180);
const BACKLOG: i32 = 1024;

/// A socket, and its address with the real port.
pub(crate) type Bound = (TcpListener, SocketAddr);

/// Binds the addresses of the options to one port; with port 0 the first socket chooses it.
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

#[cfg(test)]
mod tests;
