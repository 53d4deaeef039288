//! Metrics of node-ipam (`rule:metrics-of-stock-keep-their-names`).
//!
//! | file | holds |
//! |---|---|
//! | `metrics/state.rs` | [`StateMetrics`]: what is read at scrape time, whichever allocator it is of |
//! | `metrics/writes.rs` | [`WriteMetrics`]: what became of PATCHes |
//! | `metrics/series.rs` | labels and numbers of a pool's series |

mod series;
mod state;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, Registry};

use crate::allocator::{Allocator, Skipped};
use series::{float, series};
pub(crate) use state::{PoolsOf, StateMetrics};
pub(crate) use writes::WriteMetrics;

/// Registered once per process; a restarted controller attaches its new allocator.
#[derive(Clone)]
pub(crate) struct IpamMetrics {
    state: StateMetrics,
    writes: WriteMetrics,
    first_patch: Histogram,
    tries: HistogramVec,
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
                "Time from receiving a Node without a pod CIDR to its first PATCH leaving; Nodes \
                 that found the pool full are left out.",
            )
            .buckets(vec![
                0.000_05, 0.000_1, 0.000_2, 0.000_3, 0.000_5, 0.000_75, 0.001, 0.002, 0.005, 0.01,
                0.05, 0.25, 1.0, 5.0,
            ]),
        )?;
        let tries = HistogramVec::new(
            HistogramOpts::new(
                format!("{}_allocation_tries_per_request", of.prefix()),
                "Used blocks stepped over before the free one, per allocation.",
            )
            .buckets(vec![1.0, 5.0, 25.0, 125.0, 625.0]),
            of.labels(),
        )?;
        registry.register(Box::new(first_patch.clone()))?;
        registry.register(Box::new(tries.clone()))?;
        let (state, writes) = (StateMetrics::new(registry, of)?, WriteMetrics::new(registry)?);
        Ok(Self { state, writes, first_patch, tries })
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
        self.writes.second_allocators.clone()
    }

    /// A PATCH ended in this class.
    pub(crate) fn patched(&self, class: &str) {
        self.writes.patched(class);
    }

    /// A Node was assigned after this time.
    pub(crate) fn assigned(&self, took: Duration) {
        self.writes.assigned(took);
    }
}
