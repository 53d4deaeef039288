//! [`Job`]: one probe to make. A cluster gives it to its task, which hands it back with the end.

use std::sync::Arc;
use std::time::Duration;

use health::Moment;
use tokio_util::sync::CancellationToken;

use super::prober::ClusterProber;

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
