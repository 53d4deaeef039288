//! Metrics of Nodes whose pod CIDRs a cloud knows of (`rule:metrics-of-stock-keep-their-names`).

use std::time::Duration;

use prometheus::{GaugeVec, Histogram, HistogramOpts, IntCounterVec, Opts, Registry};

use super::claims::Claims;

/// Registered once per process. Clones are the same.
#[derive(Clone)]
pub(super) struct CloudMetrics {
    assignment: Histogram,
    patches: IntCounterVec,
    usage: GaugeVec,
    max: GaugeVec,
}

impl CloudMetrics {
    /// Registers everything; `queue` is the name of the work queue.
    pub(super) fn new(registry: &Registry, queue: &str) -> Result<Self, prometheus::Error> {
        let buckets = vec![0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
        let assignment = HistogramOpts::new(
            "node_ipam_assignment_duration_seconds",
            "Time from first seeing a Node without a pod CIDR to the answer that it is set.",
        );
        let pool = |name: &str, help: &str| GaugeVec::new(Opts::new(name, help), &["clusterCIDR"]);
        let metrics = Self {
            assignment: Histogram::with_opts(assignment.buckets(buckets))?,
            patches: IntCounterVec::new(
                Opts::new(
                    "node_ipam_patch_results_total",
                    "Node PATCHes by class of their result.",
                ),
                &["class"],
            )?,
            usage: pool(
                "node_ipam_controller_cidrset_usage_cidrs",
                "Used blocks as a share of all, 0 to 1; blocks of service ranges count as used.",
            )?,
            // Spelled so in kube-controller-manager.
            max: pool("node_ipam_controller_cirdset_max_cidrs", "Blocks of the cluster CIDR.")?,
        };
        let dropped = IntCounterVec::new(
            Opts::new(
                "workqueue_dropped_objects",
                "Nodes that were given up after too many attempts, which never happens here.",
            ),
            &["name"],
        )?;
        dropped.with_label_values(&[queue]);
        registry.register(Box::new(dropped))?;
        registry.register(Box::new(metrics.assignment.clone()))?;
        registry.register(Box::new(metrics.patches.clone()))?;
        registry.register(Box::new(metrics.usage.clone()))?;
        registry.register(Box::new(metrics.max.clone()))?;
        Ok(metrics)
    }

    /// A PATCH ended in this class.
    pub(super) fn patched(&self, class: &str) {
        self.patches.with_label_values(&[class]).inc();
    }

    /// A Node was assigned after this time.
    pub(super) fn assigned(&self, took: Duration) {
        self.assignment.observe(took.as_secs_f64());
    }

    /// Shows how full the pool is, if there is one.
    pub(super) fn show(&self, claims: &Claims) {
        let Some((cidr, used, blocks)) = claims.usage() else { return };
        let cidr = cidr::canonical(&cidr);
        self.usage.with_label_values(&[&cidr]).set(float(used) / float(blocks));
        self.max.with_label_values(&[&cidr]).set(float(blocks));
    }
}

#[allow(clippy::cast_precision_loss, reason = "a metric of 2^53 blocks needs no more digits")]
fn float(blocks: u128) -> f64 {
    blocks as f64
}
