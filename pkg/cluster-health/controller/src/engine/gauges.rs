//! The metrics that are read off the clusters at scrape time, so that none outlives its cluster
//! (`rule:nothing-outlives-its-object`) and none drifts from the truth.

mod each;

use super::metrics::Counters;
use prometheus::Registry;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use health::Standing;
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::cluster_registry::ClusterRegistry;
use super::flavour::now;
use super::member_cluster::MemberCluster;
use super::metrics::Family;
use each::Each;

/// Metrics that are exposed only if asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// Series of each cluster.
    pub per_cluster: bool,
    /// Where we and the objects differ.
    pub audit: bool,
}

pub(crate) struct Gauges {
    shown: Arc<Mutex<Weak<ClusterRegistry>>>,
    in_flight: Family,
    insufficient: Family,
    queue_age: Family,
    clusters: Family,
    stale_after: Family,
    /// `None` outside of an audit.
    differences: Option<Family>,
    shard_clusters: Family,
    shard_replicas: Family,
    /// `None` without series per cluster.
    each: Option<Each>,
}

impl Gauges {
    pub(crate) fn new(
        shown: Arc<Mutex<Weak<ClusterRegistry>>>,
        exposed: Exposed,
    ) -> Result<Self, prometheus::Error> {
        let differences = || {
            Family::gauge(
                "clusterhealth_audit_differences",
                "Clusters whose object lastingly says another thing than we would publish.",
                &["flavour", "ours", "stored"],
            )
        };
        Ok(Self {
            shown,
            in_flight: Family::gauge("clusterhealth_inflight_probes", "Probes under way.", &[])?,
            insufficient: Family::gauge(
                "clusterhealth_capacity_insufficient",
                "1 when the limit of concurrent probes cannot keep the periods.",
                &[],
            )?,
            queue_age: Family::gauge(
                "clusterhealth_status_write_queue_age_seconds",
                "For how long the oldest status waits to be written.",
                &[],
            )?,
            clusters: Family::gauge(
                "clusterhealth_clusters",
                "Clusters by what is published about them.",
                &["flavour", "state"],
            )?,
            stale_after: Family::gauge(
                "clusterhealth_stale_after_seconds",
                "Time without a completed probe after which a cluster is published as unknown; the longest.",
                &["flavour"],
            )?,
            shard_clusters: Family::gauge(
                "clusterhealth_shard_clusters",
                "Clusters by who has them, with several shards: this replica, or another one.",
                &["owner"],
            )?,
            shard_replicas: Family::gauge(
                "clusterhealth_shard_replicas",
                "Replicas that share the clusters, with several shards: alive, and expected by --cluster-health-shards.",
                &["state"],
            )?,
            differences: exposed.audit.then(differences).transpose()?,
            each: exposed.per_cluster.then(|| Each::new(exposed.audit)).transpose()?,
        })
    }

    fn shards(
        &self,
        own: usize,
        others: usize,
        alive: usize,
        expected: usize,
    ) -> [MetricFamily; 2] {
        let (clusters, replicas) = (&self.shard_clusters, &self.shard_replicas);
        let series = |family: &Family, rows: [(&str, usize); 2]| {
            family.of(rows.map(|(label, count)| family.series(&[label], float(count))).into())
        };
        [
            series(clusters, [("self", own), ("others", others)]),
            series(replicas, [("alive", alive), ("expected", expected)]),
        ]
    }

    /// For alerts: periods differ by flavour.
    fn stale(&self, clusters: &[Arc<MemberCluster>]) -> MetricFamily {
        let mut longest = BTreeMap::<_, Duration>::new();
        for member in clusters {
            let stale_after = member.view(|it| it.policy.stale_after());
            let known = longest.entry(member.flavour.name()).or_default();
            *known = stale_after.max(*known);
        }
        let series = longest
            .into_iter()
            .map(|(flavour, limit)| self.stale_after.series(&[flavour], limit.as_secs_f64()));
        self.stale_after.of(series.collect())
    }

    fn count(&self, clusters: &[Arc<MemberCluster>]) -> MetricFamily {
        let mut counts = BTreeMap::new();
        for member in clusters {
            let flavour = member.flavour.name();
            for standing in Standing::ALL {
                counts.entry((flavour, standing.label())).or_insert(0);
            }
            let standing = member.view(|it| it.member.published().map(|it| it.standing));
            let state = standing.unwrap_or(Standing::Unknown).label();
            *counts.entry((flavour, state)).or_insert(0) += 1;
        }
        let series = counts
            .into_iter()
            .map(|((flavour, state), count)| self.clusters.series(&[flavour, state], float(count)));
        self.clusters.of(series.collect())
    }
}

fn differences(family: &Family, clusters: &[Arc<MemberCluster>]) -> MetricFamily {
    let mut counts = BTreeMap::new();
    for member in clusters {
        let words = member.view(|it| {
            let lasting = it.difference.filter(|it| it.is_lasting());
            lasting.map(|it| (it.ours.label(), it.stored_label()))
        });
        if let Some((ours, stored)) = words {
            *counts.entry([member.flavour.name(), ours, stored]).or_insert(0) += 1;
        }
    }
    let series = counts.into_iter().map(|(labels, count)| family.series(&labels, float(count)));
    family.of(series.collect())
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        let all = [&self.in_flight, &self.insufficient, &self.queue_age, &self.clusters];
        let all =
            all.into_iter().chain([&self.stale_after, &self.shard_clusters, &self.shard_replicas]);
        let all = all.chain(&self.differences).map(Family::desc);
        all.chain(self.each.iter().flat_map(Each::descs)).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(fleet) = self.shown.lock().upgrade() else { return Vec::new() };
        let (now, clusters) = (now().monotonic, fleet.all());
        let insufficient = f64::from(u8::from(fleet.permits.is_insufficient()));
        let mut families = vec![
            self.in_flight.single(float(fleet.permits.in_flight())),
            self.insufficient.single(insufficient),
            self.queue_age.single(fleet.writer.oldest(now).as_secs_f64()),
            self.count(&clusters),
            self.stale(&clusters),
        ];
        if let Some((alive, expected)) = fleet.ownership.replicas() {
            families.extend(self.shards(clusters.len(), fleet.elsewhere().len(), alive, expected));
        }
        families.extend(self.differences.iter().map(|family| differences(family, &clusters)));
        families.extend(self.each.iter().flat_map(|each| each.read(&clusters, now)));
        families
    }
}

#[allow(clippy::cast_precision_loss, reason = "no process has 2^52 clusters or probes")]
fn float(count: usize) -> f64 {
    count as f64
}

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
