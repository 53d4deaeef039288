//! Accepts connections: all from this host, and a bounded number from other hosts, so that no flood
//! from the network keeps the kubelet's probe of `/livez` waiting.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus::IntCounter;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::connection::Connections;
use crate::listener;

/// Connections from other hosts at once. Probes and scrapers need a handful; a flood must cost us
/// no memory.
pub(crate) const REMOTE_CONNECTIONS: usize = 256;
/// Pause after the system refused a connection: it is out of file descriptors, and asking again
/// at once would only burn CPU.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Who gets in. Clones share the bounds: one for each socket of a server.
#[derive(Clone)]
pub(crate) struct Admission {
    connections: Arc<Connections>,
    open: TaskTracker,
    end: CancellationToken,
    remote_slots: Arc<Semaphore>,
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
        let remote_slots = Arc::new(Semaphore::new(REMOTE_CONNECTIONS));
        Self { connections, open, end, remote_slots, rejected }
    }

    /// Starts to serve the peer, or closes its connection. Never waits: whoever comes next may be
    /// the kubelet. `own` is the address at our end.
    fn admit(&self, stream: TcpStream, peer: IpAddr, own: IpAddr) {
        let slot = if is_same_host(peer, own) {
            None
        } else if let Ok(slot) = self.remote_slots.clone().try_acquire_owned() {
            Some(slot)
        } else {
            self.rejected.inc();
            debug!(v = 5, logger = "serving", %peer, "Too many connections, closing this one");
            return;
        };
        listener::tune(&stream);
        let (connections, end) = (self.connections.clone(), self.end.clone());
        self.open.spawn(async move {
            end.run_until_cancelled(Box::pin(connections.serve(stream, peer))).await;
            drop(slot);
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
