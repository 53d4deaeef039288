//! Metrics of node-ipam (`rule:metrics-of-stock-keep-their-names`).
//!
//! What is state is read off the allocator at scrape time, so it cannot drift from the truth.

use std::sync::{Arc, Weak};
use std::time::Duration;

use cidr::IpNet;
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

use crate::allocator::{Allocator, Skipped, Snapshot};

/// Where the pools come from, which names their series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolsOf {
    /// The flags.
    Flags,
    /// ClusterCIDRs: the series have the name of theirs, and end with it.
    ClusterCidrs,
}

impl PoolsOf {
    fn prefix(self) -> &'static str {
        match self {
            Self::Flags => "node_ipam_controller_cidrset",
            Self::ClusterCidrs => "node_ipam_controller_multicidrset",
        }
    }

    /// Spelled so in kube-controller-manager, for the one and not for the other.
    fn max_name(self) -> &'static str {
        match self {
            Self::Flags => "node_ipam_controller_cirdset_max_cidrs",
            Self::ClusterCidrs => "node_ipam_controller_multicidrset_max_cidrs",
        }
    }

    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Flags => &["clusterCIDR"],
            Self::ClusterCidrs => &["clusterCIDR", "clusterCIDRName"],
        }
    }
}

/// Registered once per process; a restarted controller attaches its new allocator.
#[derive(Clone)]
pub(crate) struct IpamMetrics {
    allocator: Arc<Mutex<Weak<Mutex<Allocator>>>>,
    assignment: Histogram,
    first_patch: Histogram,
    patches: IntCounterVec,
    tries: HistogramVec,
    second_allocator: IntCounter,
}

impl IpamMetrics {
    /// Registers everything.
    ///
    /// # Errors
    /// A name is registered already.
    pub(crate) fn new(registry: &Registry, of: PoolsOf) -> Result<Self, prometheus::Error> {
        let assignment = Histogram::with_opts(
            HistogramOpts::new(
                "node_ipam_assignment_duration_seconds",
                "Time from first seeing a Node without a pod CIDR to the answer that it is set.",
            )
            .buckets(vec![
                0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
            ]),
        )?;
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
        let patches = IntCounterVec::new(
            Opts::new("node_ipam_patch_results_total", "Node PATCHes by class of their result."),
            &["class"],
        )?;
        let tries = HistogramVec::new(
            HistogramOpts::new(
                format!("{}_allocation_tries_per_request", of.prefix()),
                "Used blocks stepped over before the free one, per allocation.",
            )
            .buckets(vec![1.0, 5.0, 25.0, 125.0, 625.0]),
            of.labels(),
        )?;
        let second_allocator = IntCounter::new(
            "node_ipam_second_allocator_total",
            "How often kube-controller-manager was found to give out pod CIDRs as well.",
        )?;
        registry.register(Box::new(second_allocator.clone()))?;
        registry.register(Box::new(assignment.clone()))?;
        registry.register(Box::new(first_patch.clone()))?;
        registry.register(Box::new(patches.clone()))?;
        registry.register(Box::new(tries.clone()))?;
        let allocator = Arc::new(Mutex::new(Weak::new()));
        registry.register(Box::new(StateCollector::new(allocator.clone(), of)?))?;
        Ok(Self { allocator, assignment, first_patch, patches, tries, second_allocator })
    }

    /// Shows this allocator from now on.
    pub(crate) fn attach(&self, allocator: &Arc<Mutex<Allocator>>) {
        for pool in allocator.lock().snapshot().pools {
            let cidr = cidr::canonical(&pool.cidr);
            self.tries.with_label_values(&series(&cidr, pool.object.as_deref()));
        }
        *self.allocator.lock() = Arc::downgrade(allocator);
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

    /// kube-controller-manager gives out pod CIDRs as well.
    pub(crate) fn met_second_allocator(&self) {
        self.second_allocator.inc();
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

/// The families that are read off the allocator. Gauges and counters are filled anew at each
/// scrape, hence gauges here; two are re-typed as counters when shown.
struct StateCollector {
    allocator: Arc<Mutex<Weak<Mutex<Allocator>>>>,
    /// One scrape at a time: they share the gauges.
    scrape: Mutex<()>,
    allocations: GaugeVec,
    releases: GaugeVec,
    usage: GaugeVec,
    max: GaugeVec,
    free: GaugeVec,
    pressure: GaugeVec,
    pending: IntGaugeVec,
    conflicts: IntGauge,
    external: IntGauge,
    in_services: IntGauge,
    resting: IntGauge,
    foreign: Gauge,
}

impl StateCollector {
    fn new(
        allocator: Arc<Mutex<Weak<Mutex<Allocator>>>>,
        of: PoolsOf,
    ) -> Result<Self, prometheus::Error> {
        let pool = |name: &str, help: &str| GaugeVec::new(Opts::new(name, help), of.labels());
        let prefix = of.prefix();
        Ok(Self {
            allocator,
            scrape: Mutex::new(()),
            allocations: pool(
                &format!("{prefix}_cidrs_allocations_total"),
                "Blocks that became used.",
            )?,
            releases: pool(&format!("{prefix}_cidrs_releases_total"), "Blocks that became free.")?,
            usage: pool(
                &format!("{prefix}_usage_cidrs"),
                "Used blocks as a share of all, 0 to 1; blocks of service ranges count as used.",
            )?,
            max: pool(of.max_name(), "Blocks of the cluster CIDR.")?,
            free: pool(
                "node_ipam_pool_free_blocks",
                "Blocks of the cluster CIDR that no claim overlaps.",
            )?,
            pressure: pool(
                "node_ipam_pool_pressure_percent",
                "Highest warning line that the use of the cluster CIDR stands at: 0, 80 or 95.",
            )?,
            pending: IntGaugeVec::new(
                Opts::new(
                    "node_ipam_pending_nodes",
                    "Live Nodes without a pod CIDR: pending, starved (no free block), reserved \
                     (block taken, not yet on the Node).",
                ),
                &["state"],
            )?,
            conflicts: IntGauge::new(
                "node_ipam_conflicts",
                "Pairs of live Nodes whose pod CIDRs overlap.",
            )?,
            external: IntGauge::new(
                "node_ipam_external_claims",
                "Pod CIDRs of live Nodes outside all cluster CIDRs, or not parsable.",
            )?,
            in_services: IntGauge::new(
                "node_ipam_service_range_overlaps",
                "Pod CIDRs of live Nodes that overlap a service range.",
            )?,
            resting: IntGauge::new(
                "node_ipam_resting_claims",
                "Nodes that are gone and whose pod CIDRs are given to nobody yet, as \
                 --pod-cidr-reuse-delay asks for.",
            )?,
            foreign: Gauge::new(
                "node_ipam_foreign_assignments_total",
                "Nodes that somebody else gave a pod CIDR to while they waited for ours.",
            )?,
        })
    }

    fn fill(&self, state: &Snapshot) {
        // Pools may have gone since the last scrape.
        for of_pools in [&self.allocations, &self.releases, &self.usage] {
            of_pools.reset();
        }
        for of_pools in [&self.max, &self.free, &self.pressure] {
            of_pools.reset();
        }
        for pool in &state.pools {
            let cidr = cidr::canonical(&pool.cidr);
            let label = &series(&cidr, pool.object.as_deref());
            self.allocations.with_label_values(label).set(float(pool.occupied_total));
            self.releases.with_label_values(label).set(float(pool.freed_total));
            self.usage.with_label_values(label).set(float(pool.used) / float(pool.blocks));
            self.max.with_label_values(label).set(float(pool.blocks));
            self.free.with_label_values(label).set(float(pool.blocks - pool.used));
            self.pressure.with_label_values(label).set(f64::from(pool.pressure));
        }
        for (name, count) in
            [("pending", state.pending), ("starved", state.starved), ("reserved", state.reserved)]
        {
            self.pending.with_label_values(&[name]).set(integer(count));
        }
        self.conflicts.set(integer(state.conflicts));
        self.external.set(integer(state.external));
        self.in_services.set(integer(state.in_services));
        self.resting.set(integer(state.resting));
        self.foreign.set(float(u128::from(state.foreign_total)));
    }

    fn gauges(&self) -> [&dyn Collector; 9] {
        [
            &self.usage,
            &self.max,
            &self.free,
            &self.pressure,
            &self.pending,
            &self.conflicts,
            &self.external,
            &self.in_services,
            &self.resting,
        ]
    }

    fn counters(&self) -> [&dyn Collector; 3] {
        [&self.allocations, &self.releases, &self.foreign]
    }
}

impl Collector for StateCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges().into_iter().chain(self.counters()).flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(allocator) = self.allocator.lock().upgrade() else { return Vec::new() };
        let state = allocator.lock().snapshot();
        let _alone = self.scrape.lock();
        self.fill(&state);
        let mut families: Vec<_> = self.gauges().into_iter().flat_map(Collector::collect).collect();
        families.extend(self.counters().into_iter().flat_map(Collector::collect).map(into_counter));
        families
    }
}

/// The values of the labels of a pool's series.
fn series<'a>(cidr: &'a str, object: Option<&'a str>) -> Vec<&'a str> {
    std::iter::once(cidr).chain(object).collect()
}

/// Shows a family of gauges as counters.
fn into_counter(mut family: MetricFamily) -> MetricFamily {
    family.set_field_type(prometheus::proto::MetricType::COUNTER);
    for metric in family.mut_metric() {
        let value = metric.get_gauge().get_value();
        let mut counter = prometheus::proto::Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    }
    family
}

#[allow(clippy::cast_precision_loss, reason = "a metric of 2^53 blocks needs no more digits")]
fn float(blocks: u128) -> f64 {
    blocks as f64
}

fn integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
