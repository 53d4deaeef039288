//! [`WriteMetrics`]: what became of PATCHes, how long Nodes waited for them, and who else writes.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

/// Registered once per process. Clones are the same.
#[derive(Clone)]
pub(crate) struct WriteMetrics {
    assignment: Histogram,
    patches: IntCounterVec,
    pub(crate) second_allocators: IntCounter,
}

impl WriteMetrics {
    /// Registers them.
    ///
    /// # Errors
    /// A name is registered already.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let assignment = Histogram::with_opts(
            HistogramOpts::new(
                "node_ipam_assignment_duration_seconds",
                "Time from first seeing a Node without a pod CIDR to the answer that it is set.",
            )
            .buckets(vec![
                0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
            ]),
        )?;
        let patches = IntCounterVec::new(
            Opts::new("node_ipam_patch_results_total", "Node PATCHes by class of their result."),
            &["class"],
        )?;
        let second_allocators = IntCounter::new(
            "node_ipam_second_allocator_total",
            "How often kube-controller-manager was found to give out pod CIDRs as well.",
        )?;
        registry.register(Box::new(second_allocators.clone()))?;
        registry.register(Box::new(assignment.clone()))?;
        registry.register(Box::new(patches.clone()))?;
        Ok(Self { assignment, patches, second_allocators })
    }

    /// A PATCH ended in this class.
    pub(crate) fn patched(&self, class: &str) {
        self.patches.with_label_values(&[class]).inc();
    }

    /// A Node was assigned after this time.
    pub(crate) fn assigned(&self, took: Duration) {
        self.assignment.observe(took.as_secs_f64());
    }
}
