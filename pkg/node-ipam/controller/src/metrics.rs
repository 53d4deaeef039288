//! Metrics of node-ipam, the same for all allocators. Those of kube-controller-manager keep its
//! spelling, `cirdset` included. What is state is read at scrape time (`metrics/state.rs`).

mod state;

use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};
use state::{StateMetrics, float, series};

use super::allocator::{Allocator, Skipped};

pub(crate) use state::PoolsOf;

/// Registered once per process; a restarted controller attaches its new allocator. Clones are the
/// same.
#[derive(Clone)]
pub(crate) struct IpamMetrics {
    state: StateMetrics,
    first_patch: Histogram,
    assignment: Histogram,
    tries: HistogramVec,
    patches: IntCounterVec,
    second_allocators: IntCounter,
}

impl IpamMetrics {
    /// Registers everything.
    ///
    /// # Errors
    /// A name is registered already.
    pub(crate) fn new(registry: &Registry, of: PoolsOf) -> Result<Self, prometheus::Error> {
        let first_patch = Histogram::with_opts(
            HistogramOpts::new(
                "node_ipam_first_patch_delay_seconds",
                "Time from receiving a Node without a pod CIDR until its first PATCH is sent; Nodes \
                 that found the pool full, or wait for a cloud, are left out.",
            )
            .buckets(vec![
                0.000_05, 0.000_1, 0.000_2, 0.000_3, 0.000_5, 0.000_75, 0.001, 0.002, 0.005, 0.01,
                0.05, 0.25, 1.0, 5.0,
            ]),
        )?;
        let assignment = Histogram::with_opts(
            HistogramOpts::new(
                "node_ipam_assignment_duration_seconds",
                "Time from first seeing a Node without a pod CIDR to the answer that it is set.",
            )
            .buckets(vec![
                0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
            ]),
        )?;
        let tries = HistogramVec::new(
            HistogramOpts::new(
                format!("{}_allocation_tries_per_request", of.prefix()),
                "Used blocks that were skipped before a free block was found, per allocation.",
            )
            .buckets(vec![1.0, 5.0, 25.0, 125.0, 625.0]),
            of.labels(),
        )?;
        let patches = IntCounterVec::new(
            Opts::new("node_ipam_patch_results_total", "Node PATCHes by class of their result."),
            &["class"],
        )?;
        let second_allocators = IntCounter::new(
            "node_ipam_second_allocator_total",
            "Pod CIDRs that kube-controller-manager assigned while this program leads.",
        )?;
        registry.register(Box::new(first_patch.clone()))?;
        registry.register(Box::new(assignment.clone()))?;
        registry.register(Box::new(tries.clone()))?;
        registry.register(Box::new(patches.clone()))?;
        registry.register(Box::new(second_allocators.clone()))?;
        let state = StateMetrics::new(registry, of)?;
        Ok(Self { state, first_patch, assignment, tries, patches, second_allocators })
    }

    /// Shows this allocator from now on.
    pub(crate) fn attach(&self, allocator: &Arc<Mutex<Allocator>>) {
        for pool in allocator.lock().snapshot().pools {
            let cidr = cidr::canonical(&pool.cidr);
            self.tries.with_label_values(&series(&cidr, pool.object.as_deref()));
        }
        self.state.attach(allocator);
    }

    /// A block was allocated, and how it was found.
    pub(crate) fn skipped(&self, search: &Skipped) {
        let cidr = cidr::canonical(&search.pool);
        let series = self.tries.with_label_values(&series(&cidr, search.object.as_deref()));
        series.observe(float(search.blocks));
    }

    /// A range is no pool any more.
    pub(crate) fn ended(&self, range: &IpNet, object: &str) {
        let removed = self.tries.remove_label_values(&[&cidr::canonical(range), object]);
        // Without an allocation it had no series.
        drop(removed);
    }

    /// The first PATCH of a Node left, this long after its event was received.
    pub(crate) fn left_first(&self, delay: Duration) {
        self.first_patch.observe(delay.as_secs_f64());
    }

    /// Counts how often kube-controller-manager was found to give out pod CIDRs as well.
    pub(crate) fn second_allocators(&self) -> IntCounter {
        self.second_allocators.clone()
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
