//! Who gets a connection: everybody on this host, and a bounded number of all the others, so that no
//! flood from the network keeps the kubelet's probe of `/livez` waiting.

use std::net::IpAddr;
use std::sync::Arc;

use prometheus::IntCounter;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use crate::connection::Connections;
use crate::{access, listener};

/// Connections from other hosts at once. Probes need a handful; the rest is a flood, which must
/// cost us no memory.
pub(crate) const MOST_STRANGERS: usize = 256;

/// Stands between the listening socket and the connections.
pub(crate) struct Door {
    connections: Arc<Connections>,
    open: TaskTracker,
    end: CancellationToken,
    seats: Arc<Semaphore>,
    rejected: IntCounter,
}

impl Door {
    /// Connections run on `open`, until `end` at the longest.
    pub(crate) fn new(
        connections: Arc<Connections>,
        open: TaskTracker,
        end: CancellationToken,
        rejected: IntCounter,
    ) -> Self {
        Self { connections, open, end, seats: Arc::new(Semaphore::new(MOST_STRANGERS)), rejected }
    }

    /// Starts to serve the peer, or closes its connection. Never waits: whoever comes next may be
    /// the kubelet.
    pub(crate) fn let_in(&self, stream: TcpStream, peer: IpAddr) {
        let seat = if access::is_local(peer) {
            None
        } else if let Ok(seat) = self.seats.clone().try_acquire_owned() {
            Some(seat)
        } else {
            self.rejected.inc();
            debug!(v = 5, logger = "serving", %peer, "Too many connections, closing this one");
            return;
        };
        listener::tune(&stream);
        let (connections, end) = (self.connections.clone(), self.end.clone());
        self.open.spawn(async move {
            end.run_until_cancelled(Box::pin(connections.serve(stream, peer))).await;
            drop(seat);
        });
    }
}
