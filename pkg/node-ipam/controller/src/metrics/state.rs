//! [`StateMetrics`]: what is state is read off the allocator at scrape time, so it cannot drift from
//! the truth.

use std::sync::{Arc, Weak};

use metrics::Family;
use parking_lot::Mutex;
use prometheus::Registry;
use prometheus::proto::Metric;

use crate::allocator::Allocator;
use crate::pressure::{PoolState, Snapshot};

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

/// The allocator whose numbers are shown, if one runs.
type Shown = Arc<Mutex<Option<Weak<Mutex<Allocator>>>>>;

/// Registered once per process; a restarted controller attaches its new allocator.
#[derive(Clone)]
pub(crate) struct StateMetrics(Shown);

impl StateMetrics {
    /// Registers all that is read at scrape time.
    ///
    /// # Errors
    /// A name is registered already.
    pub(crate) fn new(registry: &Registry, of: PoolsOf) -> Result<Self, prometheus::Error> {
        let shown = Shown::default();
        let scraped = Arc::clone(&shown);
        metrics::at_scrape(registry, families(of)?, move |families| {
            let allocator = scraped.lock().as_ref().and_then(Weak::upgrade);
            let snapshot = allocator.map(|allocator| allocator.lock().snapshot());
            snapshot.map_or_else(Default::default, |snapshot| read(families, &snapshot))
        })?;
        Ok(Self(shown))
    }

    /// Shows this allocator from now on, for as long as it lives.
    pub(super) fn attach(&self, allocator: &Arc<Mutex<Allocator>>) {
        *self.0.lock() = Some(Arc::downgrade(allocator));
    }
}

/// The families, in the order in which [`read`] fills them.
fn families(of: PoolsOf) -> Result<[Family; 12], prometheus::Error> {
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
    ])
}

fn read(families: &[Family; 12], state: &Snapshot) -> [Vec<Metric>; 12] {
    let [allocations, releases, usage, max, free, pressure, singles @ ..] = families;
    let [pending, conflicts, external, in_services, resting, foreign] = singles;
    let pools = |family: &Family, value: fn(&PoolState) -> f64| {
        let of_pool = |pool: &PoolState| {
            let cidr = cidr::canonical(&pool.cidr);
            family.series(&series(&cidr, pool.object.as_deref()), value(pool))
        };
        state.pools.iter().map(of_pool).collect()
    };
    let single = |family: &Family, count: usize| vec![family.series(&[], float(count as u128))];
    let waiting =
        [("pending", state.pending), ("starved", state.starved), ("reserved", state.reserved)];
    [
        pools(allocations, |pool| float(pool.occupied_total)),
        pools(releases, |pool| float(pool.freed_total)),
        pools(usage, |pool| float(pool.used) / float(pool.blocks)),
        pools(max, |pool| float(pool.blocks)),
        pools(free, |pool| float(pool.blocks - pool.used)),
        pools(pressure, |pool| f64::from(pool.pressure)),
        waiting.map(|(name, count)| pending.series(&[name], float(count as u128))).into(),
        single(conflicts, state.conflicts),
        single(external, state.external),
        single(in_services, state.in_services),
        single(resting, state.resting),
        vec![foreign.series(&[], float(u128::from(state.foreign_total)))],
    ]
}

/// The values of the labels of a pool's series.
pub(super) fn series<'a>(cidr: &'a str, object: Option<&'a str>) -> Vec<&'a str> {
    std::iter::once(cidr).chain(object).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a metric of 2^53 blocks needs no more digits")]
pub(super) fn float(blocks: u128) -> f64 {
    blocks as f64
}
