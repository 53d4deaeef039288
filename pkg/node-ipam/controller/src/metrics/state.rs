//! [`StateMetrics`]: what is state is read off the allocator at scrape time, so it cannot drift from
//! the truth.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, IntGauge, IntGaugeVec, Opts, Registry};

use super::series::{float, series};
use crate::snapshot::{Counted, Snapshot};

/// Where the pools come from, which names their series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolsOf {
    /// The flags.
    Flags,
    /// ClusterCIDRs: the series have the name of theirs, and end with it.
    ClusterCidrs,
}

impl PoolsOf {
    pub(super) fn prefix(self) -> &'static str {
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

    pub(super) fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Flags => &["clusterCIDR"],
            Self::ClusterCidrs => &["clusterCIDR", "clusterCIDRName"],
        }
    }
}

/// Whose numbers are shown, if anybody's.
type Shown = Arc<Mutex<Option<Weak<dyn Counted>>>>;

/// Registered once per process; a restarted controller attaches what it has made anew.
#[derive(Clone)]
pub(crate) struct StateMetrics(Shown);

impl StateMetrics {
    /// Registers all that is read at scrape time.
    ///
    /// # Errors
    /// A name is registered already.
    pub(crate) fn new(registry: &Registry, of: PoolsOf) -> Result<Self, prometheus::Error> {
        let shown = Shown::default();
        registry.register(Box::new(StateCollector::new(Arc::clone(&shown), of)?))?;
        Ok(Self(shown))
    }

    /// Shows these numbers from now on, for as long as they live.
    pub(crate) fn attach<C: Counted + 'static>(&self, counted: &Arc<C>) {
        let counted: Arc<dyn Counted> = Arc::<C>::clone(counted);
        *self.0.lock() = Some(Arc::downgrade(&counted));
    }
}

/// The families that are read off the allocator. Gauges and counters are filled anew at each
/// scrape, hence gauges here; two are re-typed as counters when shown.
struct StateCollector {
    shown: Shown,
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
    fn new(shown: Shown, of: PoolsOf) -> Result<Self, prometheus::Error> {
        let pool = |name: &str, help: &str| GaugeVec::new(Opts::new(name, help), of.labels());
        let prefix = of.prefix();
        Ok(Self {
            shown,
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
        let shown = self.shown.lock().as_ref().and_then(Weak::upgrade);
        let Some(state) = shown.map(|shown| shown.count()) else { return Vec::new() };
        let _alone = self.scrape.lock();
        self.fill(&state);
        let mut families: Vec<_> = self.gauges().into_iter().flat_map(Collector::collect).collect();
        families.extend(self.counters().into_iter().flat_map(Collector::collect).map(into_counter));
        families
    }
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

fn integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
