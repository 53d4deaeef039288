//! One listener: its sockets and certificate from the start, its pages and connections while it
//! serves, an orderly end. A process has one for the secure port and may have one for webhooks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::acceptor::{Acceptor, Admission, Bound, listen};
use crate::clients::Clients;
use crate::connection::Connections;
use crate::guard::SharedGuard;
use crate::reloader::{self, Reloader};
use crate::{Guard, ListenerOptions, Pages, ServeError, ServingMetrics};

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
    ///
    /// # Errors
    /// The port is taken, or a file cannot be used.
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
