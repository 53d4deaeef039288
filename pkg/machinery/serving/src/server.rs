//! Accepts connections and ends them in order (host.md 5.1).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::certificate::Keeper;
use crate::connection::Connections;
use crate::door::Door;
use crate::metrics::ServerMetrics;
use crate::{Routes, ServeError, ServingOptions, listener};

/// How long open requests may take after the stop (host.md 9.1, step 6).
const DRAIN: Duration = Duration::from_secs(2);
/// Pause after the system refused a connection: it is out of file descriptors, and asking again
/// at once would only burn CPU.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket with its certificate, ready to serve.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: rustls::ServerConfig,
    keeper: Keeper,
    http2_max_streams: u32,
}

impl Server {
    /// Binds the socket, then loads or makes the certificate (host.md 3.1, step 5). Peers that
    /// connect before [`Server::serve`] wait in the kernel's queue.
    pub async fn bind(options: &ServingOptions) -> Result<Self, ServeError> {
        let listener = listener::listen(options)?;
        let asked = SocketAddr::new(options.bind_address, options.port);
        let failed = |source| ServeError::Listen { address: asked, source };
        let address = listener.local_addr().map_err(failed)?;
        let keeper = Keeper::load(options).await?;
        let tls = tls_config(&keeper, options.disable_http2)?;
        Ok(Self { listener, address, tls, keeper, http2_max_streams: options.http2_max_streams })
    }

    /// Where it listens, with the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then lets open requests finish for at most 2 seconds. Fails only when
    /// the server's metrics are in the registry already.
    pub async fn serve(self, routes: Routes, stop: CancellationToken) -> Result<(), ServeError> {
        let metrics = ServerMetrics::new(&routes.registry)?;
        let rejected = metrics.rejected.clone();
        // Cancelled when this future ends or is dropped: no connection outlives its server.
        let end = CancellationToken::new();
        let _end = end.clone().drop_guard();
        let connections = Arc::new(Connections::new(
            routes,
            self.tls,
            self.http2_max_streams,
            metrics,
            stop.clone(),
        ));
        info!(logger = "serving", "Serving securely on {}", self.address);
        let open = TaskTracker::new();
        let door = Door::new(connections, open.clone(), end, rejected);
        tokio::select! {
            () = stop.cancelled() => {}
            () = accept_for_ever(&self.listener, &door) => {}
            () = self.keeper.run() => {}
        }
        drop(self.listener);
        open.close();
        if timeout(DRAIN, open.wait()).await.is_err() {
            warn!(
                logger = "serving",
                connections = open.len(),
                "Closing connections that did not finish in time"
            );
        }
        Ok(())
    }
}

async fn accept_for_ever(listener: &TcpListener, door: &Door) {
    loop {
        let (stream, peer) = accept(listener).await;
        door.let_in(stream, peer.ip());
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            // The peer gave up before we came to it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(err) => {
                warn!(logger = "serving", %err, "Cannot accept connection");
                sleep(REFUSED_PAUSE).await;
            }
        }
    }
}

fn tls_config(keeper: &Keeper, disable_http2: bool) -> Result<rustls::ServerConfig, ServeError> {
    let provider = Arc::new(ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(keeper.shown());
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if !disable_http2 {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(config)
}

#[cfg(test)]
mod tests;
