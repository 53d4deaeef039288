//! The task of an informer.

use std::sync::Arc;
use std::time::Duration;

use model::{Cached, Metadata};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{Informer, presence};

/// How often a wait for the first list is logged.
const STILL_WAITING: Duration = Duration::from_secs(10);

impl<T: Cached> Informer<T> {
    /// Lists and watches until `stop`. Called once, in a task of its own.
    pub async fn run(&self, stop: CancellationToken) {
        self.run_with(None, stop).await;
    }

    /// The same for a kind that may not be served: dormant while it is not, as `crds` tell, an
    /// informer of [`Source::crds`].
    pub async fn run_while_served(&self, crds: Informer<Metadata>, stop: CancellationToken) {
        self.run_with(Some(crds), stop).await;
    }

    /// Waits until the kind is served, and for us, as `crds` tell, and lists none of its objects:
    /// for an informer that is not run.
    pub async fn until_served(&self, crds: Informer<Metadata>) {
        presence::until_served(&self.shared, crds).await;
    }

    async fn run_with(&self, crds: Option<Informer<Metadata>>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            never = presence::run(Arc::clone(&self.shared), crds) => match never {},
            () = self.log_sync() => {}
        }
    }

    /// Logs the wait for the first list and its end; then never returns.
    async fn log_sync(&self) {
        let (started, resource) = (Instant::now(), self.name());
        while timeout(STILL_WAITING, self.synced()).await.is_err() {
            // Who is refused says so in other words.
            if !self.is_dormant() && self.denied().is_none() {
                let waited = started.elapsed();
                info!(logger = "informer", resource, ?waited, "Waiting for caches to sync");
            }
        }
        let (took, objects) = (started.elapsed(), self.len());
        info!(v = 2, logger = "informer", resource, objects, ?took, "Caches populated");
        std::future::pending::<()>().await;
    }
}
