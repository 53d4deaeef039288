//! One listener: its socket and certificate from the start, its pages and connections while it
//! serves, an orderly end. A process has one for the secure port and may have one for webhooks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::acceptor::Acceptor;
use crate::certificate::Reloader;
use crate::client_ca::Clients;
use crate::connection::Connections;
use crate::guard::SharedGuard;
use crate::{Guard, ListenerOptions, Pages, ServeError, ServingMetrics, listener};

/// How long open requests may take after the stop.
const DRAIN: Duration = Duration::from_secs(2);

/// A bound socket with its certificate, ready to serve.
pub struct Server {
    name: &'static str,
    listener: TcpListener,
    address: SocketAddr,
    tls: rustls::ServerConfig,
    clients: Clients,
    reloader: Reloader,
    http2_max_streams: u32,
}

impl Server {
    /// Binds the socket, then loads or makes the certificate. Peers that connect before
    /// [`Server::serve`] wait in the kernel's queue.
    ///
    /// # Errors
    /// The port is taken, or a file cannot be used.
    pub async fn bind(options: &ListenerOptions) -> Result<Self, ServeError> {
        let (listener, address) = listener::listen(options)?;
        let clients = Clients::of(&options.client_certificates).await?;
        let reloader =
            Reloader::load(&options.certificate, options.bind_address, clients.ca()).await?;
        let http2 = !options.disable_http2;
        let tls = options.tls.server_config(reloader.current(), clients.are_asked(), http2)?;
        let (name, http2_max_streams) = (options.name, options.http2_max_streams);
        Ok(Self { name, listener, address, tls, clients, reloader, http2_max_streams })
    }

    /// Where it listens, with the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
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
        info!(logger = "serving", listener = self.name, "Serving securely on {}", self.address);
        let acceptor = Acceptor::new(self.listener, connections, open.clone(), end, rejected);
        tokio::select! {
            () = stop.cancelled() => {}
            () = acceptor.run() => {}
            () = self.reloader.run() => {}
        }
        drop(acceptor);
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
