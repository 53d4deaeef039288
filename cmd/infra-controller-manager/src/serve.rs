//! The HTTPS server of the process: bound before anything touches the network, stopped last.

use std::sync::Arc;

use anyhow::Result;
use serving::{Guard, ListenerOptions, Pages, Server, ServingMetrics};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// Bound sockets, whose peers wait in the kernel.
pub(crate) struct Bound {
    server: Server,
    metrics: ServingMetrics,
}

/// The server and its task; no task with `--secure-port=0`.
#[derive(Default)]
pub(crate) struct Serving {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Bound {
    /// Takes the port at every address and loads the certificate.
    ///
    /// # Errors
    /// The port is taken, or the certificate cannot be used.
    pub(crate) async fn new(options: &ListenerOptions, metrics: &ServingMetrics) -> Result<Self> {
        let server = Server::bind(options).await?;
        Ok(Self { server, metrics: metrics.clone() })
    }

    /// Serves these pages, those that controllers add later included.
    pub(crate) fn serve(self, pages: &Pages, guard: Arc<dyn Guard>) -> Serving {
        let Self { server, metrics } = self;
        let (stop, pages) = (CancellationToken::new(), pages.clone());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { server.serve(pages, guard, &metrics, stopped).await });
        Serving { stop, task: Some(task) }
    }
}

impl Serving {
    /// Lets open requests end, for a moment.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let Some(task) = self.task else { return };
        if let Err(panicked) = task.await {
            error!(err = %panicked, "Serving ended badly");
        }
    }
}
