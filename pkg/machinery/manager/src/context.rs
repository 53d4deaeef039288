//! What a running controller is given.

use std::time::Duration;

use events::Recorder;
use prometheus::{IntCounter, Registry};
use tokio_util::sync::CancellationToken;
use workqueue::QueueMetrics;

use crate::Informers;

/// One controller's means for one run.
#[derive(Clone)]
pub struct Context {
    /// Acts as the controller's identity, behind its own throttle and the leader's fence; it never
    /// repeats a request by itself.
    pub client: kube::Client,
    /// Shared caches.
    pub informers: Informers,
    /// Records events under the controller's component name.
    pub recorder: Recorder,
    /// For the controller's own metrics.
    pub registry: Registry,
    /// Upstream's `workqueue_*` families.
    pub queue_metrics: QueueMetrics,
    /// Counts contained panics of this controller.
    pub panics: IntCounter,
    /// Cancelled when the controller is to stop.
    pub stop: CancellationToken,
    /// How long a write may take before it is given up: the time that is certain to pass between
    /// a leader's last renewal and the next leader's first write.
    pub patch_timeout: Duration,
}
