//! Metrics of node-ipam, the same for all allocators. Those of kube-controller-manager keep its
//! spelling, `cirdset` included. What is state is read off the allocator at scrape time, so it
//! cannot drift from the truth ([`read`]).

use std::sync::{Arc, Weak};
use std::time::Duration;

use cidr::IpNet;
use metrics::Family;
use parking_lot::Mutex;
use prometheus::proto::Metric;
use prometheus::{Error, Histogram, HistogramOpts, HistogramVec, IntCounterVec, Registry};

use super::allocator::{Allocator, Skipped};
use super::pressure::{PoolState, Servable, Snapshot};
use super::second_allocator::{KNOWN, OTHER_LABEL};

/// Registered once per process; a restarted controller attaches its new allocator. Clones are the
/// same.
#[derive(Clone)]
pub(crate) struct IpamMetrics {
    shown: Shown,
    first_patch: Histogram,
    assignment: Histogram,
    tries: HistogramVec,
    patches: IntCounterVec,
    /// Counts Nodes of other allocators.
    pub(crate) second_allocators: IntCounterVec,
}

/// The allocator whose numbers are shown, if one runs.
type Shown = Arc<Mutex<Option<Weak<Mutex<Allocator>>>>>;

impl IpamMetrics {
    /// Registers everything.
    ///
    /// # Errors
    /// A name is registered already.
    pub(crate) fn new(registry: &Registry, of: PoolsOf) -> Result<Self, Error> {
        let first_patch = HistogramOpts::new(
            "node_ipam_first_patch_delay_seconds",
            "Time from receiving a Node without a pod CIDR until its first PATCH is sent; Nodes \
             that found the pool full, or wait for a cloud, are left out.",
        )
        .buckets(vec![
            0.000_05, 0.000_1, 0.000_2, 0.000_3, 0.000_5, 0.000_75, 0.001, 0.002, 0.005, 0.01,
            0.05, 0.25, 1.0, 5.0,
        ]);
        let assignment = HistogramOpts::new(
            "node_ipam_assignment_duration_seconds",
            "Time from first seeing a Node without a pod CIDR to the answer that it is set.",
        )
        .buckets(vec![
            0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
        ]);
        let tries = format!("{}_allocation_tries_per_request", of.prefix());
        let metrics = Self {
            shown: Shown::default(),
            first_patch: metrics::register(registry, Histogram::with_opts(first_patch)?)?,
            assignment: metrics::register(registry, Histogram::with_opts(assignment)?)?,
            tries: metrics::histogram(
                registry,
                &tries,
                "Used blocks that were skipped before a free block was found, per allocation.",
                of.labels(),
                &[1.0, 5.0, 25.0, 125.0, 625.0],
            )?,
            patches: metrics::counter(
                registry,
                "node_ipam_patch_results_total",
                "Node PATCHes by class of their result.",
                &["class"],
            )?,
            second_allocators: metrics::counter(
                registry,
                "node_ipam_second_allocator_total",
                "Nodes whose pod CIDR another program assigned while this program led, by the program.",
                &["manager"],
            )?,
        };
        for label in KNOWN.iter().map(|it| it.label).chain([OTHER_LABEL]) {
            metrics.second_allocators.with_label_values(&[label]);
        }
        let shown = Arc::clone(&metrics.shown);
        metrics::at_scrape(registry, families(of)?, move |families| {
            let allocator = shown.lock().as_ref().and_then(Weak::upgrade);
            let snapshot = allocator.map(|allocator| allocator.lock().snapshot());
            snapshot.map_or_else(Default::default, |snapshot| read(families, &snapshot))
        })?;
        Ok(metrics)
    }

    /// Shows this allocator from now on, for as long as it lives.
    pub(crate) fn attach(&self, allocator: &Arc<Mutex<Allocator>>) {
        for pool in allocator.lock().snapshot().pools {
            let cidr = cidr::canonical(&pool.cidr);
            self.tries.with_label_values(&series(&cidr, pool.object.as_deref()));
        }
        *self.shown.lock() = Some(Arc::downgrade(allocator));
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

    /// A PATCH ended in this class.
    pub(crate) fn patched(&self, class: &str) {
        self.patches.with_label_values(&[class]).inc();
    }

    /// A Node was assigned after this time.
    pub(crate) fn assigned(&self, took: Duration) {
        self.assignment.observe(took.as_secs_f64());
    }
}

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

/// The families, in the order in which [`read`] fills them.
fn families(of: PoolsOf) -> Result<[Family; 14], Error> {
    let pool = |name: &str, help: &str| Family::gauge(name, help, of.labels());
    let counter = |name: &str, help: &str| {
        Family::counter(&format!("{}_{name}", of.prefix()), help, of.labels())
    };
    let single = |name: &str, help: &str| Family::gauge(name, help, &[]);
    Ok([
        counter("cidrs_allocations_total", "Blocks that became used.")?,
        counter("cidrs_releases_total", "Blocks that became free.")?,
        pool(
            &format!("{}_usage_cidrs", of.prefix()),
            "Used blocks as a share of all, 0 to 1; blocks of service ranges count as used.",
        )?,
        pool(of.max_name(), "Blocks of the cluster CIDR.")?,
        pool("node_ipam_pool_free_blocks", "Blocks of the cluster CIDR that no claim overlaps.")?,
        pool(
            "node_ipam_pool_pressure_percent",
            "Highest warning threshold that the use of the cluster CIDR has reached: 0, 80 or 95.",
        )?,
        Family::gauge(
            "node_ipam_pool_state",
            "1 for the state of the pool: serving, draining, terminating (its ClusterCIDR is being \
             deleted), or unheld (its ClusterCIDR has no finalizer yet). Only serving pools assign \
             blocks.",
            &["clusterCIDR", "clusterCIDRName", "state"],
        )?,
        Family::gauge(
            "node_ipam_pending_nodes",
            "Live Nodes without a pod CIDR: pending, starved (no free block), reserved \
             (block taken, not yet on the Node).",
            &["state"],
        )?,
        single("node_ipam_conflicts", "Pairs of live Nodes whose pod CIDRs overlap.")?,
        single(
            "node_ipam_external_claims",
            "Pod CIDRs of live Nodes outside all cluster CIDRs, or not parsable.",
        )?,
        single(
            "node_ipam_service_range_overlaps",
            "Pod CIDRs of live Nodes that overlap a service range.",
        )?,
        single(
            "node_ipam_resting_claims",
            "Deleted Nodes whose pod CIDRs are held back by --pod-cidr-reuse-delay.",
        )?,
        Family::counter(
            "node_ipam_foreign_assignments_total",
            "Nodes to which another writer assigned a pod CIDR while they waited for this program.",
            &[],
        )?,
        Family::gauge(
            "node_ipam_servable_nodes",
            "How many more Nodes the ClusterCIDR, or the cluster CIDRs of the flags together, can serve: \
             free blocks of the IP family that has the fewest; 0 for a ClusterCIDR that assigns none.",
            &["clusterCIDRName"],
        )?,
    ])
}

fn read(families: &[Family; 14], state: &Snapshot) -> [Vec<Metric>; 14] {
    let [allocations, releases, usage, max, free, pressure, states, singles @ ..] = families;
    let [pending, conflicts, external, in_services, resting, foreign, servable] = singles;
    let pools = |family: &Family, value: fn(&PoolState) -> f64| {
        let of_pool = |pool: &PoolState| {
            let cidr = cidr::canonical(&pool.cidr);
            family.series(&series(&cidr, pool.object.as_deref()), value(pool))
        };
        state.pools.iter().map(of_pool).collect()
    };
    let state_of = |pool: &PoolState| {
        let (cidr, name) =
            (cidr::canonical(&pool.cidr), pool.object.as_deref().unwrap_or_default());
        states.series(&[&cidr, name, pool.state], 1.0)
    };
    let single = |family: &Family, count: usize| vec![family.series(&[], float(count as u128))];
    let servable_series = |it: &Servable| {
        let name = it.object.as_ref().map_or("", |(name, _)| name);
        servable.series(&[name], float(it.nodes))
    };
    let waiting =
        [("pending", state.pending), ("starved", state.starved), ("reserved", state.reserved)];
    [
        pools(allocations, |pool| float(pool.occupied_total)),
        pools(releases, |pool| float(pool.freed_total)),
        pools(usage, |pool| float(pool.used) / float(pool.blocks)),
        pools(max, |pool| float(pool.blocks)),
        pools(free, |pool| float(pool.blocks - pool.used)),
        pools(pressure, |pool| f64::from(pool.pressure)),
        state.pools.iter().map(state_of).collect(),
        waiting.map(|(name, count)| pending.series(&[name], float(count as u128))).into(),
        single(conflicts, state.conflicts),
        single(external, state.external),
        single(in_services, state.in_services),
        single(resting, state.resting),
        vec![foreign.series(&[], float(u128::from(state.foreign_total)))],
        state.servable.iter().map(servable_series).collect(),
    ]
}

/// The values of the labels of a pool's series.
fn series<'a>(cidr: &'a str, object: Option<&'a str>) -> Vec<&'a str> {
    std::iter::once(cidr).chain(object).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a metric of 2^53 blocks needs no more digits")]
fn float(blocks: u128) -> f64 {
    blocks as f64
}
