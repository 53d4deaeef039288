//! [`Metrics`]: all `clusterhealth_*` metrics, registered once per process.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus::Registry;

use super::counters::Counters;
use super::gauges::Gauges;
use super::shared::Shared;

/// Registered once per process; a restarted controller attaches its new state.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) counters: Counters,
    shown: Arc<Mutex<Weak<Shared>>>,
}

impl Metrics {
    /// Registers everything; series for each cluster only if `per_cluster`.
    ///
    /// # Errors
    /// A name is registered already.
    pub fn new(registry: &Registry, per_cluster: bool) -> Result<Self, prometheus::Error> {
        let shown = Arc::new(Mutex::new(Weak::new()));
        let counters = Counters::new(registry)?;
        registry.register(Box::new(Gauges::new(Arc::clone(&shown), per_cluster)?))?;
        Ok(Self { counters, shown })
    }

    /// Shows this state from now on.
    pub(crate) fn attach(&self, shared: &Arc<Shared>) {
        *self.shown.lock() = Arc::downgrade(shared);
    }
}
