//! The task of an informer.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kube_api::{Cached, Metadata};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::intake::Intake;
use crate::{Informer, presence};

/// How often a wait for the first list is logged.
const STILL_WAITING: Duration = Duration::from_secs(10);

impl<T: Cached> Informer<T> {
    /// Lists and watches until `stop`. Called once, in a task of its own.
    pub async fn run(&self, stop: CancellationToken) {
        run(self.cache.clone(), None, stop).await;
    }

    /// The same for a kind that may not be served: dormant while it is not, as `crds` tell, an
    /// informer of [`Source::crds`].
    pub async fn run_while_served(&self, crds: Informer<Metadata>, stop: CancellationToken) {
        run(self.cache.clone(), Some(crds), stop).await;
    }

    /// Waits until the kind is served, and for us, as `crds` tell, and lists none of its objects:
    /// for an informer that is not run.
    pub async fn until_served(&self, crds: Informer<Metadata>) {
        presence::until_served(&*self.cache, crds).await;
    }
}

/// The same for informers of all types; boxed, so that no crate gets a copy of its own.
fn run(
    cache: Arc<dyn Intake>,
    crds: Option<Informer<Metadata>>,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            never = presence::run(&*cache, crds) => match never {},
            () = log_sync(&*cache) => {}
        }
    })
}

/// Logs the wait for the first list and its end; then never returns.
async fn log_sync(cache: &dyn Intake) {
    let (started, shared) = (Instant::now(), cache.shared());
    let resource = &*shared.resource;
    while timeout(STILL_WAITING, shared.listed(None)).await.is_err() {
        // Who is refused says so in other words.
        if !shared.progress.borrow().dormant && shared.denied().is_none() {
            let waited = started.elapsed();
            info!(logger = "informer", resource, ?waited, "Waiting for caches to sync");
        }
    }
    let (took, objects) = (started.elapsed(), cache.len());
    info!(v = 2, logger = "informer", resource, objects, ?took, "Caches populated");
    std::future::pending::<()>().await;
}
