//! Metrics of the sample, which tests read.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::{IntCounter, Registry};

/// Clones count together.
#[derive(Clone)]
pub(crate) struct SampleMetrics {
    passes: IntCounter,
    stale: IntCounter,
}

impl SampleMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let passes = IntCounter::new("sample_passes_total", "Passes over all objects.")?;
        let stale = IntCounter::new(
            "sample_stale_reads_total",
            "Passes whose cache held an older object than the pass before had written.",
        )?;
        registry.register(Box::new(passes.clone()))?;
        registry.register(Box::new(stale.clone()))?;
        Ok(Self { passes, stale })
    }
}

/// Remembers by itself what was written, to prove that the caches do not lag behind it.
pub(crate) struct Memory {
    metrics: SampleMetrics,
    written: Mutex<HashMap<Arc<str>, u64>>,
}

impl Memory {
    pub(crate) fn new(metrics: SampleMetrics) -> Self {
        Self { metrics, written: Mutex::default() }
    }

    /// A pass begins with this version in the cache; 0 for none.
    pub(crate) fn begin(&self, key: &str, cached: u64) {
        self.metrics.passes.inc();
        if cached > 0 && self.written.lock().get(key).is_some_and(|written| cached < *written) {
            self.metrics.stale.inc();
        }
    }

    /// An answer to a write had this version.
    pub(crate) fn wrote(&self, key: &Arc<str>, version: u64) {
        let mut written = self.written.lock();
        let newest = written.entry(Arc::clone(key)).or_default();
        *newest = version.max(*newest);
    }
}
