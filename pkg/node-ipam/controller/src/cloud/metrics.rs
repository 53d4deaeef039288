//! Metrics of Nodes whose pod CIDRs a cloud knows of (`rule:metrics-of-stock-keep-their-names`): those
//! of the other allocators, and that none is given up.

use prometheus::{IntCounterVec, Opts, Registry};

use crate::metrics::{PoolsOf, StateMetrics, WriteMetrics};

/// Registered once per process. Clones are the same.
#[derive(Clone)]
pub(super) struct CloudMetrics {
    pub(super) state: StateMetrics,
    pub(super) writes: WriteMetrics,
}

impl CloudMetrics {
    /// Registers everything; `queue` is the name of the work queue.
    pub(super) fn new(registry: &Registry, queue: &str) -> Result<Self, prometheus::Error> {
        let dropped = IntCounterVec::new(
            Opts::new(
                "workqueue_dropped_objects",
                "Nodes that were given up after too many attempts, which never happens here.",
            ),
            &["name"],
        )?;
        dropped.with_label_values(&[queue]);
        registry.register(Box::new(dropped))?;
        let state = StateMetrics::new(registry, PoolsOf::Flags)?;
        Ok(Self { state, writes: WriteMetrics::new(registry)? })
    }
}
