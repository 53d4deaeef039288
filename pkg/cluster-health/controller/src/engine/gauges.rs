//! The metrics that are read off the clusters at scrape time, so that none outlives its cluster
//! (`rule:nothing-outlives-its-object`) and none drifts from the truth.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use health::{Beat, GuardState, Health};
use metrics::Family;
use parking_lot::Mutex;
use prometheus::Registry;
use prometheus::proto::Metric;

use super::cluster_registry::ClusterRegistry;
use super::difference::Difference;
use super::flavour::now;
use super::guard_targets::GuardView;
use super::member_cluster::MemberCluster;
use super::metrics::Counters;

mod each;

/// Metrics that are exposed only if asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exposed {
    /// Series of each cluster.
    pub per_cluster: bool,
    /// Where we and the objects differ.
    pub audit: bool,
}

/// Registers what is read off the clusters of `shown`.
fn register(
    registry: &Registry,
    shown: &Arc<Mutex<Weak<ClusterRegistry>>>,
    exposed: Exposed,
) -> Result<(), prometheus::Error> {
    let gauge = Family::gauge;
    let families = [
        gauge("clusterhealth_inflight_probes", "Probes under way.", &[])?,
        gauge(
            "clusterhealth_capacity_insufficient",
            "1 when --cluster-health-max-concurrent-probes is too small to keep the periods if no member answers.",
            &[],
        )?,
        gauge(
            "clusterhealth_status_write_queue_age_seconds",
            "Age of the oldest status that waits to be written.",
            &[],
        )?,
        gauge(
            "clusterhealth_clusters",
            "Clusters by their published health.",
            &["flavour", "state"],
        )?,
        gauge(
            "clusterhealth_stale_after_seconds",
            "Time without a completed probe after which a member is published as unknown; the longest.",
            &["flavour"],
        )?,
        gauge(
            "clusterhealth_shard_clusters",
            "Clusters by the replica that probes them, with several shards: this replica or another one.",
            &["owner"],
        )?,
        gauge(
            "clusterhealth_shard_replicas",
            "Replicas that share the members, with several shards: alive, and expected by --cluster-health-shards.",
            &["state"],
        )?,
        gauge(
            "clusterhealth_shard_leases_unread",
            "1 while this leader probes all clusters although it cannot read the shard Leases: replicas that share and can read them may probe the same clusters.",
            &[],
        )?,
        gauge(
            "clusterhealth_guard_state",
            "1 for the state of the guard against outages of this process, else 0.",
            &["state"],
        )?,
        gauge(
            "clusterhealth_guard_ratio",
            "Share of the members probed in the last 20 s that did not answer, without those that are published as offline.",
            &[],
        )?,
        gauge(
            "clusterhealth_guard_waiting",
            "Clusters that failed often enough to be published as offline and wait for the guard.",
            &[],
        )?,
        gauge(
            "clusterhealth_guard_target_up",
            "1 when a target of the guard answered in its last round, else 0; local is the network of this machine.",
            &["target"],
        )?,
        gauge(
            "clusterhealth_members_by_beat",
            "Clusters that renew a Lease in --cluster-health-beats-namespace, or did, by what it says: well, unwell or silent.",
            &["flavour", "beat"],
        )?,
        gauge(
            "clusterhealth_members_path_down",
            "Clusters that probes do not reach and that still renew their Lease.",
            &["flavour"],
        )?,
        gauge(
            "clusterhealth_checks_config_unusable",
            "1 while the ConfigMap of --cluster-health-checks-config cannot be read or used: the checks stay as they were, and after a restart none runs.",
            &[],
        )?,
    ];
    let of_all = Arc::clone(shown);
    metrics::at_scrape(registry, families, move |families| {
        let registry = of_all.lock().upgrade();
        registry.map_or_else(Default::default, |registry| read(families, &registry))
    })?;
    if exposed.audit {
        register_audit(registry, Arc::clone(shown))?;
    }
    if exposed.per_cluster {
        each::register(registry, Arc::clone(shown), exposed.audit)?;
    }
    Ok(())
}

/// Registers the differences that an audit finds.
fn register_audit(
    registry: &Registry,
    shown: Arc<Mutex<Weak<ClusterRegistry>>>,
) -> Result<(), prometheus::Error> {
    let family = Family::gauge(
        "clusterhealth_audit_differences",
        "In an audit, members whose stored health differs from the result of the probes for a while.",
        &["flavour", "ours", "stored"],
    )?;
    metrics::at_scrape(registry, [family], move |[family]| {
        let registry = shown.lock().upgrade();
        [registry.map_or_else(Vec::new, |registry| differences(family, &registry.all()))]
    })
}

/// The series of the families of [`register`], in their order.
fn read(families: &[Family; 15], registry: &ClusterRegistry) -> [Vec<Metric>; 15] {
    let [families @ .., state, ratio, waiting, targets, beats, path_down, unusable] = families;
    let [in_flight, insufficient, queue_age, states, stale_after, owners, replicas, unread] =
        families;
    let (now, clusters) = (now().monotonic, registry.all());
    let is_insufficient = number(registry.permits.is_insufficient());
    let two = |family: &Family, rows: [(&str, usize); 2]| {
        rows.map(|(label, count)| family.series(&[label], float(count))).into()
    };
    let shards = registry.ownership.replicas().map(|(alive, expected)| {
        let others = registry.elsewhere().len();
        let owned = two(owners, [("self", clusters.len()), ("others", others)]);
        (owned, two(replicas, [("alive", alive), ("expected", expected)]))
    });
    let (owners, replicas) = shards.unwrap_or_default();
    let unread = registry.ownership.is_unread().map(|is| unread.series(&[], number(is)));
    let view = registry.guard.view();
    let guard = view.map(|view| guard([state, ratio, waiting, targets], &view));
    let [state, ratio, waiting, targets] = guard.unwrap_or_default();
    [
        vec![in_flight.series(&[], float(registry.permits.in_flight()))],
        vec![insufficient.series(&[], is_insufficient)],
        vec![queue_age.series(&[], registry.writer.oldest(now).as_secs_f64())],
        count(states, &clusters),
        stale(stale_after, &clusters),
        owners,
        replicas,
        unread.into_iter().collect(),
        state,
        ratio,
        waiting,
        targets,
        heard(beats, registry, &clusters),
        paths_down(path_down, &clusters),
        registry
            .checks
            .is_unusable()
            .map(|is| unusable.series(&[], number(is)))
            .into_iter()
            .collect(),
    ]
}

/// The series of the guard, after its first round.
fn guard([state, ratio, waiting, target]: [&Family; 4], view: &GuardView) -> [Vec<Metric>; 4] {
    let states = GuardState::ALL.map(|it| state.series(&[it.label()], number(it == view.state)));
    let references = view.answers.references.iter().zip(1..);
    let references = references.map(|(up, index)| (format!("ref-{index}"), *up));
    let own = [("api", view.answers.api), ("local", !view.answers.local_down)];
    let own = own.map(|(name, up)| (name.to_owned(), up));
    let targets = own.into_iter().chain(references);
    [
        states.into(),
        vec![ratio.series(&[], view.ratio)],
        vec![waiting.series(&[], float(view.waiting))],
        targets.map(|(name, up)| target.series(&[&name], number(up))).collect(),
    ]
}

fn heard(
    family: &Family,
    registry: &ClusterRegistry,
    clusters: &[Arc<MemberCluster>],
) -> Vec<Metric> {
    let mut counts = BTreeMap::<_, usize>::new();
    for member in clusters {
        let label = match registry.beats.of(member) {
            Beat::Absent => continue,
            Beat::Well => "well",
            Beat::Unwell => "unwell",
            Beat::Silent => "silent",
        };
        *counts.entry((member.flavour.name(), label)).or_default() += 1;
    }
    let series = |((flavour, beat), count)| family.series(&[flavour, beat], float(count));
    counts.into_iter().map(series).collect()
}

fn paths_down(family: &Family, clusters: &[Arc<MemberCluster>]) -> Vec<Metric> {
    let mut counts = BTreeMap::<_, usize>::new();
    for member in clusters {
        let is_down = member.view(|it| it.member.is_path_down());
        *counts.entry(member.flavour.name()).or_default() += usize::from(is_down);
    }
    let series = |(flavour, count)| family.series(&[flavour], float(count));
    counts.into_iter().map(series).collect()
}

/// For alerts: periods differ by flavour.
fn stale(family: &Family, clusters: &[Arc<MemberCluster>]) -> Vec<Metric> {
    let mut longest = BTreeMap::<_, Duration>::new();
    for member in clusters {
        let stale_after = member.view(|it| it.policy.stale_after());
        let known = longest.entry(member.flavour.name()).or_default();
        *known = stale_after.max(*known);
    }
    let series =
        longest.into_iter().map(|(flavour, limit)| family.series(&[flavour], limit.as_secs_f64()));
    series.collect()
}

fn count(family: &Family, clusters: &[Arc<MemberCluster>]) -> Vec<Metric> {
    let mut counts = BTreeMap::new();
    for member in clusters {
        let flavour = member.flavour.name();
        for health in Health::ALL {
            counts.entry((flavour, health.label())).or_insert(0);
        }
        let state = member.health().unwrap_or(Health::Unknown).label();
        *counts.entry((flavour, state)).or_insert(0) += 1;
    }
    let series = counts
        .into_iter()
        .map(|((flavour, state), count)| family.series(&[flavour, state], float(count)));
    series.collect()
}

fn differences(family: &Family, clusters: &[Arc<MemberCluster>]) -> Vec<Metric> {
    let mut counts = BTreeMap::new();
    for member in clusters {
        let words = member.view(|it| {
            let lasting = it.difference.filter(Difference::is_lasting);
            lasting.map(|it| (it.ours.label(), it.stored_label()))
        });
        if let Some((ours, stored)) = words {
            *counts.entry([member.flavour.name(), ours, stored]).or_insert(0) += 1;
        }
    }
    let series = counts.into_iter().map(|(labels, count)| family.series(&labels, float(count)));
    series.collect()
}

fn number(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[allow(clippy::cast_precision_loss, reason = "no process has 2^52 clusters or probes")]
fn float(count: usize) -> f64 {
    count as f64
}

/// Registered once per process; a restarted controller attaches its new state.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) counters: Counters,
    shown: Arc<Mutex<Weak<ClusterRegistry>>>,
}

impl Metrics {
    /// Registers the metrics that `exposed` asks for.
    pub(crate) fn new(registry: &Registry, exposed: Exposed) -> Result<Self, prometheus::Error> {
        let shown = Arc::new(Mutex::new(Weak::new()));
        let counters = Counters::new(registry)?;
        register(registry, &shown, exposed)?;
        Ok(Self { counters, shown })
    }

    /// Shows this state from now on.
    pub(crate) fn attach(&self, clusters: &Arc<ClusterRegistry>) {
        *self.shown.lock() = Arc::downgrade(clusters);
    }
}
