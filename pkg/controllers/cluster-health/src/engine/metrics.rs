//! [`Metrics`]: all `clusterhealth_*` metrics, registered once per process.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus::Registry;

use super::cluster_registry::ClusterRegistry;
use super::counters::Counters;
use super::gauges::{Exposed, Gauges};

/// Registered once per process; a restarted controller attaches its new state.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) counters: Counters,
    shown: Arc<Mutex<Weak<ClusterRegistry>>>,
}

impl Metrics {
    /// Registers what is to be exposed.
    ///
    /// # Errors
    /// A name is registered already.
    pub fn new(registry: &Registry, exposed: Exposed) -> Result<Self, prometheus::Error> {
        let shown = Arc::new(Mutex::new(Weak::new()));
        let counters = Counters::new(registry)?;
        registry.register(Box::new(Gauges::new(Arc::clone(&shown), exposed)?))?;
        Ok(Self { counters, shown })
    }

    /// Shows this state from now on.
    pub(crate) fn attach(&self, fleet: &Arc<ClusterRegistry>) {
        *self.shown.lock() = Arc::downgrade(fleet);
    }
}
