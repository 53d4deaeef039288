//! The HTTPS server of the process: started before anything touches the network, stopped last.

use anyhow::Result;
use prometheus::Registry;
use serving::{ListenerOptions, Pages, Server, ServingMetrics};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// The server and its task; no task with `--secure-port=0`.
pub(crate) struct Serving {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Serving {
    /// Binds and serves these pages, those that controllers add later included.
    ///
    /// # Errors
    /// The port is taken, or the certificate cannot be used.
    pub(crate) async fn start(
        options: Option<&ListenerOptions>,
        pages: &Pages,
        registry: &Registry,
    ) -> Result<Self> {
        let stop = CancellationToken::new();
        let Some(options) = options else { return Ok(Self { stop, task: None }) };
        let server = Server::bind(options).await?;
        let (metrics, pages) = (ServingMetrics::new(registry)?, pages.clone());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { server.serve(pages, &metrics, stopped).await });
        Ok(Self { stop, task: Some(task) })
    }

    /// Lets open requests end, for a moment.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let Some(task) = self.task else { return };
        if let Err(panicked) = task.await {
            error!(err = %panicked, "Serving ended badly");
        }
    }
}
