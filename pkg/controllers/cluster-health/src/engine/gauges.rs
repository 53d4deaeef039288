//! The metrics that are read off the clusters at scrape time, so that none outlives its cluster
//! (`rule:nothing-outlives-its-object`) and none drifts from the truth.

use std::sync::{Arc, Weak};
use std::time::Instant;

use health::{Last, Published, Ratios, Standing, Status};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, Opts};

use super::prober::now;
use super::shared::Shared;
use super::watched::Watched;

const CLUSTER: [&str; 3] = ["flavour", "namespace", "cluster"];

pub(crate) struct Gauges {
    shown: Arc<Mutex<Weak<Shared>>>,
    in_flight: Gauge,
    insufficient: Gauge,
    queue_age: Gauge,
    clusters: GaugeVec,
    /// `None` without series per cluster.
    each: Option<Each>,
}

/// One series, or a few, for each cluster.
struct Each {
    ready: GaugeVec,
    success: GaugeVec,
    probed: GaugeVec,
    changed: GaugeVec,
    available: GaugeVec,
}

impl Gauges {
    pub(crate) fn new(
        shown: Arc<Mutex<Weak<Shared>>>,
        per_cluster: bool,
    ) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str| Gauge::new(name, help);
        Ok(Self {
            shown,
            in_flight: gauge("clusterhealth_inflight_probes", "Probes under way.")?,
            insufficient: gauge(
                "clusterhealth_capacity_insufficient",
                "1 when the limit of concurrent probes cannot keep the periods.",
            )?,
            queue_age: gauge(
                "clusterhealth_status_write_queue_age_seconds",
                "For how long the oldest status waits to be written.",
            )?,
            clusters: vector(
                "clusterhealth_clusters",
                "Clusters by what is published about them.",
                &["flavour", "state"],
            )?,
            each: per_cluster.then(Each::new).transpose()?,
        })
    }

    fn read(&self, shared: &Shared) {
        let now = now().monotonic;
        self.in_flight.set(float(shared.permits.in_flight()));
        self.insufficient.set(f64::from(u8::from(shared.permits.is_insufficient())));
        self.queue_age.set(shared.writer.oldest(now).as_secs_f64());
        self.clusters.reset();
        for watched in shared.all() {
            let standing = watched.glance(|it| it.member.published().map(|it| it.standing));
            let flavour = watched.flavour.name();
            for each in Standing::ALL {
                self.clusters.with_label_values(&[flavour, each.label()]);
            }
            self.clusters
                .with_label_values(&[flavour, standing.map_or("unknown", Standing::label)])
                .inc();
        }
    }

    fn vectors(&self) -> Vec<&dyn Collector> {
        let mut all: Vec<&dyn Collector> =
            vec![&self.in_flight, &self.insufficient, &self.queue_age, &self.clusters];
        if let Some(each) = &self.each {
            all.extend(each.vectors());
        }
        all
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        self.vectors().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(shared) = self.shown.lock().upgrade() else { return Vec::new() };
        self.read(&shared);
        if let Some(each) = &self.each {
            each.read(&shared, now().monotonic);
        }
        self.vectors().into_iter().flat_map(Collector::collect).collect()
    }
}

impl Each {
    fn new() -> Result<Self, prometheus::Error> {
        Ok(Self {
            ready: vector(
                "clusterhealth_cluster_ready",
                "What is published: 1 ready, 0 not ready, -1 unknown.",
                &CLUSTER,
            )?,
            success: vector(
                "clusterhealth_cluster_probe_success",
                "The last probe: 1 when it was answered ok, else 0.",
                &CLUSTER,
            )?,
            probed: vector(
                "clusterhealth_cluster_last_probe_timestamp_seconds",
                "Start of the last completed probe.",
                &CLUSTER,
            )?,
            changed: vector(
                "clusterhealth_cluster_last_transition_timestamp_seconds",
                "When the published readiness last changed.",
                &CLUSTER,
            )?,
            available: vector(
                "clusterhealth_cluster_availability_ratio",
                "Share of the probed time in which probes were answered ok.",
                &["flavour", "namespace", "cluster", "window"],
            )?,
        })
    }

    fn read(&self, shared: &Shared, now: Instant) {
        for vector in [&self.ready, &self.success, &self.probed, &self.changed, &self.available] {
            vector.reset();
        }
        for watched in shared.all() {
            let (published, last, ratios) = watched.glance(|it| {
                (it.member.published().cloned(), it.member.last(), it.member.availability(now))
            });
            self.show(&watched, published.as_ref(), last, ratios);
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are below 2^52")]
    fn show(
        &self,
        watched: &Watched,
        published: Option<&Published>,
        last: Option<Last>,
        ratios: Ratios,
    ) {
        let (namespace, name) = watched.cluster.namespace_and_name();
        let (flavour, labels) = (watched.flavour.name(), [watched.flavour.name(), namespace, name]);
        let ready = published.map_or(Status::Unknown, |published| published.ready.status);
        self.ready.with_label_values(&labels).set(match ready {
            Status::True => 1.0,
            Status::False => 0.0,
            Status::Unknown => -1.0,
        });
        if let Some(published) = published {
            let since = published.ready.since.as_second() as f64;
            self.changed.with_label_values(&labels).set(since);
        }
        if let Some(last) = last {
            self.success.with_label_values(&labels).set(f64::from(u8::from(last.finding.is_ok())));
            let started = last.started.wall.as_millisecond() as f64 / 1000.0;
            self.probed.with_label_values(&labels).set(started);
        }
        for (window, ratio) in [("1h", ratios.hour), ("24h", ratios.day), ("30d", ratios.month)] {
            if let Some(ratio) = ratio {
                let labels = [flavour, namespace, name, window];
                self.available.with_label_values(&labels).set(ratio);
            }
        }
    }

    fn vectors(&self) -> [&dyn Collector; 5] {
        [&self.ready, &self.success, &self.probed, &self.changed, &self.available]
    }
}

fn vector(name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, prometheus::Error> {
    GaugeVec::new(Opts::new(name, help), labels)
}

#[allow(clippy::cast_precision_loss, reason = "no process makes 2^52 probes at once")]
fn float(count: usize) -> f64 {
    count as f64
}
