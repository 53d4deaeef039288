//! [`Permits`]: how many probes are under way at once.

use std::sync::Arc;
use std::time::Duration;

use health::{Load, Moment, is_insufficient, probes_at_once};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::flavour::ClusterProber;

/// A cap that follows the number of clusters, or stays where the operator put it.
pub(crate) struct Permits {
    semaphore: Arc<Semaphore>,
    /// 0 when the cap is computed.
    configured: usize,
    cap: Mutex<Cap>,
}

struct Cap {
    size: usize,
    insufficient: bool,
}

impl Permits {
    pub(crate) fn new(configured: usize) -> Self {
        let size = if configured > 0 { configured } else { probes_at_once(&[]) };
        let size = size.min(Semaphore::MAX_PERMITS);
        let cap = Mutex::new(Cap { size, insufficient: false });
        Self { semaphore: Arc::new(Semaphore::new(size)), configured, cap }
    }

    /// Waits for its turn, in the order of arrival.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // Fails only when the semaphore is closed, and it never is.
        Arc::clone(&self.semaphore).acquire_owned().await.ok()
    }

    /// Follows the clusters there are. A computed cap only grows: permits in use cannot be taken
    /// back, and too many do no harm.
    pub(crate) fn follow(&self, loads: &[Load]) {
        let mut cap = self.cap.lock();
        if self.configured == 0 {
            let wanted = probes_at_once(loads).min(Semaphore::MAX_PERMITS);
            if wanted > cap.size {
                self.semaphore.add_permits(wanted - cap.size);
                cap.size = wanted;
            }
        }
        let insufficient = is_insufficient(cap.size, loads);
        if insufficient && !cap.insufficient {
            let (at_once, enough) = (cap.size, probes_at_once(loads));
            warn!(
                at_once,
                enough,
                "--cluster-health-max-concurrent-probes is too small: if no cluster answers, probes start later than their period; raise it to the value of enough, or set it to 0"
            );
        }
        cap.insufficient = insufficient;
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.cap.lock().size.saturating_sub(self.semaphore.available_permits())
    }

    pub(crate) fn is_insufficient(&self) -> bool {
        self.cap.lock().insufficient
    }
}

/// One probe to make.
pub(crate) struct Job {
    /// Cancelled when the task was replaced or what it probes has changed: what it finds is void.
    pub(crate) void: CancellationToken,
    pub(crate) prober: Arc<dyn ClusterProber>,
    pub(crate) timeout: Duration,
    pub(crate) started: Moment,
    /// How long after its time it starts.
    pub(crate) lag: Duration,
}
