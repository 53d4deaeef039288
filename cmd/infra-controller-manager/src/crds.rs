//! `--install-crds`: the CRDs of `config/crd`, put into the cluster by a leader
//! (rule:crds-of-others-are-not-touched). Begun and ended by `process.rs`.

mod crd_label;
mod installer;
mod release;

use std::sync::Arc;

use anyhow::Result;
use client::{Clients, Profile, applicable_for};
use manager::CrdLabel;
use objects::OpenWrites;
use resilience::Fence;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::controllers::ALL;
use installer::{ATTEMPT, Installer, LOGGER};

/// The CRDs of all controllers.
pub fn manifests() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|controller| controller.crds()).copied()
}

/// The installation under way. Dropped, it is cut off, and what it sent may still be carried out.
pub(crate) struct Installing {
    stop: CancellationToken,
    /// One for each CRD: none waits for another one.
    crds: JoinSet<()>,
    open: OpenWrites,
}

/// Begins to install every CRD, each tried until it is as it should be or is found not to be ours
/// to change. Controllers need not wait: a kind that is not served leaves them dormant. CRDs
/// that have a label of which flags decide get the one that is wanted.
///
/// # Errors
/// The client cannot be made.
pub(crate) fn install(
    clients: &Clients,
    fence: Fence,
    labels: Vec<CrdLabel>,
) -> Result<Installing> {
    let profile = Profile { fence: Some(fence), ..Profile::root(LOGGER) };
    Ok(Installing::start(clients.build(profile)?, labels))
}

impl Installing {
    fn start(client: kube::Client, labels: Vec<CrdLabel>) -> Self {
        let (stop, open) = (CancellationToken::new(), OpenWrites::default());
        let installer = Arc::new(Installer::new(client, labels, &open));
        let mut crds = JoinSet::new();
        for manifest in manifests() {
            crds.spawn(Arc::clone(&installer).settle(manifest, stop.clone()));
        }
        Self { stop, crds, open }
    }

    /// Sends nothing more, and waits until the server cannot carry out anything of it any more: the
    /// lease may then be released.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if !timeout(ATTEMPT, self.ended()).await.unwrap_or(false) {
            warn!(logger = LOGGER, "The installation of the CRDs is cut off");
            self.crds.shutdown().await;
            sleep(applicable_for(ATTEMPT)).await;
        }
        self.open.settled().await;
    }

    /// Whether all have ended by themselves.
    async fn ended(&mut self) -> bool {
        let mut orderly = true;
        while let Some(ended) = self.crds.join_next().await {
            orderly &= ended.is_ok();
        }
        orderly
    }
}

#[cfg(test)]
mod tests;
