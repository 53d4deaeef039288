//! The metrics that are read off the clusters at scrape time, so that none outlives its cluster
//! (`rule:nothing-outlives-its-object`) and none drifts from the truth.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use health::{Published, Standing, Status};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Metric, MetricFamily};

use super::family::Family;
use super::prober::now;
use super::shared::Shared;
use super::watched::{Glance, STATUSES, Watched};

const CLUSTER: [&str; 3] = ["flavour", "namespace", "cluster"];

pub(crate) struct Gauges {
    shown: Arc<Mutex<Weak<Shared>>>,
    in_flight: Family,
    insufficient: Family,
    queue_age: Family,
    clusters: Family,
    /// `None` without series per cluster.
    each: Option<Each>,
}

/// One series, or a few, for each cluster.
struct Each {
    ready: Family,
    success: Family,
    probed: Family,
    changed: Family,
    available: Family,
    transitions: Family,
}

/// The series of [`Each`], while they are read.
#[derive(Default)]
struct Series {
    ready: Vec<Metric>,
    success: Vec<Metric>,
    probed: Vec<Metric>,
    changed: Vec<Metric>,
    available: Vec<Metric>,
    transitions: Vec<Metric>,
}

impl Gauges {
    pub(crate) fn new(
        shown: Arc<Mutex<Weak<Shared>>>,
        per_cluster: bool,
    ) -> Result<Self, prometheus::Error> {
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
            each: per_cluster.then(Each::new).transpose()?,
        })
    }

    fn families(&self) -> Vec<&Family> {
        let mut all = vec![&self.in_flight, &self.insufficient, &self.queue_age, &self.clusters];
        all.extend(self.each.iter().flat_map(Each::families));
        all
    }

    fn count(&self, clusters: &[Arc<Watched>]) -> MetricFamily {
        let mut counts = BTreeMap::new();
        for watched in clusters {
            let flavour = watched.flavour.name();
            for standing in Standing::ALL {
                counts.entry((flavour, standing.label())).or_insert(0);
            }
            let standing = watched.glance(|it| it.member.published().map(|it| it.standing));
            let state = standing.unwrap_or(Standing::Unknown).label();
            *counts.entry((flavour, state)).or_insert(0) += 1;
        }
        let series = counts
            .into_iter()
            .map(|((flavour, state), count)| self.clusters.series(&[flavour, state], float(count)));
        self.clusters.of(series.collect())
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        self.families().into_iter().map(Family::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(shared) = self.shown.lock().upgrade() else { return Vec::new() };
        let (now, clusters) = (now().monotonic, shared.all());
        let insufficient = f64::from(u8::from(shared.permits.is_insufficient()));
        let mut families = vec![
            self.in_flight.single(float(shared.permits.in_flight())),
            self.insufficient.single(insufficient),
            self.queue_age.single(shared.writer.oldest(now).as_secs_f64()),
            self.count(&clusters),
        ];
        if let Some(each) = &self.each {
            families.extend(each.read(&clusters, now));
        }
        families
    }
}

impl Each {
    fn new() -> Result<Self, prometheus::Error> {
        Ok(Self {
            ready: Family::gauge(
                "clusterhealth_cluster_ready",
                "What is published: 1 ready, 0 not ready, -1 unknown.",
                &CLUSTER,
            )?,
            success: Family::gauge(
                "clusterhealth_cluster_probe_success",
                "The last probe: 1 when it was answered ok, else 0.",
                &CLUSTER,
            )?,
            probed: Family::gauge(
                "clusterhealth_cluster_last_probe_timestamp_seconds",
                "Start of the last completed probe.",
                &CLUSTER,
            )?,
            changed: Family::gauge(
                "clusterhealth_cluster_last_transition_timestamp_seconds",
                "When the published readiness last changed.",
                &CLUSTER,
            )?,
            available: Family::gauge(
                "clusterhealth_cluster_availability_ratio",
                "Share of the probed time in which probes were answered ok.",
                &["flavour", "namespace", "cluster", "window"],
            )?,
            transitions: Family::counter(
                "clusterhealth_cluster_transitions_total",
                "Published changes of readiness.",
                &["flavour", "namespace", "cluster", "to"],
            )?,
        })
    }

    fn families(&self) -> [&Family; 6] {
        let Self { ready, success, probed, changed, available, transitions } = self;
        [ready, success, probed, changed, available, transitions]
    }

    fn read(&self, clusters: &[Arc<Watched>], now: Instant) -> [MetricFamily; 6] {
        let mut series = Series::default();
        for watched in clusters {
            let (namespace, name) = watched.cluster.namespace_and_name();
            let labels = [watched.flavour.name(), namespace, name];
            watched.glance(|it| self.show(&mut series, labels, &it, now));
        }
        [
            self.ready.of(series.ready),
            self.success.of(series.success),
            self.probed.of(series.probed),
            self.changed.of(series.changed),
            self.available.of(series.available),
            self.transitions.of(series.transitions),
        ]
    }

    #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 and counts are below 2^52")]
    fn show(&self, series: &mut Series, labels: [&str; 3], it: &Glance<'_>, now: Instant) {
        let published = it.member.published();
        series.ready.push(self.ready.series(&labels, ready(published)));
        if let Some(published) = published {
            let since = published.ready.since.as_second() as f64;
            series.changed.push(self.changed.series(&labels, since));
        }
        if let Some(last) = it.member.last() {
            let success = f64::from(u8::from(last.finding.is_ok()));
            let started = last.started.wall.as_millisecond() as f64 / 1000.0;
            series.success.push(self.success.series(&labels, success));
            series.probed.push(self.probed.series(&labels, started));
        }
        let [flavour, namespace, name] = labels;
        let ratios = it.member.availability(now);
        for (window, ratio) in [("1h", ratios.hour), ("24h", ratios.day), ("30d", ratios.month)] {
            let labels = [flavour, namespace, name, window];
            series.available.extend(ratio.map(|ratio| self.available.series(&labels, ratio)));
        }
        for (status, count) in STATUSES.iter().zip(it.transitions).filter(|(_, count)| *count > 0) {
            let labels = [flavour, namespace, name, status.as_str()];
            series.transitions.push(self.transitions.series(&labels, count as f64));
        }
    }
}

fn ready(published: Option<&Published>) -> f64 {
    match published.map_or(Status::Unknown, |published| published.ready.status) {
        Status::True => 1.0,
        Status::False => 0.0,
        Status::Unknown => -1.0,
    }
}

#[allow(clippy::cast_precision_loss, reason = "no process has 2^52 clusters or probes")]
fn float(count: usize) -> f64 {
    count as f64
}
