//! Accepts connections: those from this host always, those from other hosts as many as there is room
//! for, so that no flood keeps a probe of `/livez` or a scraper waiting.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus::IntCounter;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::activity::Activity;
use crate::connection::Connections;
use crate::listener;
use crate::sources::{Bounds, Sources};

/// Connections from other hosts. Probes and scrapers need a handful; a flood must cost us no memory.
const REMOTE: Bounds = Bounds { of_all: 256, of_one_source: 32, newest_wins: false };
/// Connections from this host, where the kubelet probes (rule:same-host-is-always-accepted).
const SAME_HOST: Bounds = Bounds { of_all: 2048, of_one_source: 2048, newest_wins: true };
/// Pause after the system refused a connection: it is out of file descriptors, and asking again
/// at once would only burn CPU.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Who gets in. Clones share the bounds: one for each socket of a server.
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
        listener::tune(&stream);
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

    /// Accepts for ever.
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
/// the same one (rule:same-host-is-always-accepted).
fn is_same_host(peer: IpAddr, own: IpAddr) -> bool {
    let peer = peer.to_canonical();
    peer.is_loopback() || peer == own.to_canonical()
}

#[cfg(test)]
mod tests;
