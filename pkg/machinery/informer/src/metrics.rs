//! The `icm_informer_*` metrics and upstream's `informer_store_resource_version` (`host.md` 6).
//!
//! Counters are written as things happen; what describes the store is read from the informers
//! when somebody scrapes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

/// What a scrape reads from one informer.
pub(crate) struct Sample {
    /// Group, version, resource.
    pub(crate) labels: [&'static str; 3],
    pub(crate) objects: usize,
    pub(crate) synced: bool,
    pub(crate) silent: Duration,
    pub(crate) version: u64,
}

/// An informer that can be read at scrape.
pub(crate) trait Probe: Send + Sync {
    fn sample(&self) -> Sample;
}

type Probes = Arc<Mutex<Vec<Weak<dyn Probe>>>>;

/// Metrics of all informers of one registry; cheap to clone.
#[derive(Clone)]
pub struct InformerMetrics {
    lists: IntCounterVec,
    watches: IntCounterVec,
    errors: IntCounterVec,
    relists: IntCounterVec,
    list_duration: HistogramVec,
    probes: Probes,
}

impl InformerMetrics {
    /// Registers the metrics; call it once per registry.
    ///
    /// # Errors
    /// When the registry holds one of these names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels)
        };
        let duration = HistogramOpts::new(
            "icm_informer_list_duration_seconds",
            "Time of a list from its request until all handlers have been told",
        )
        .buckets(vec![0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);
        let metrics = Self {
            lists: counter("icm_informer_lists_total", "Lists begun", &["resource"])?,
            watches: counter(
                "icm_informer_watches_total",
                "Watches opened or tried, streamed lists included",
                &["resource"],
            )?,
            errors: counter(
                "icm_informer_watch_errors_total",
                "Lists and watches that failed, by reason",
                &["resource", "reason"],
            )?,
            relists: counter(
                "icm_informer_relist_total",
                "Decisions to list everything again, by cause",
                &["resource", "cause"],
            )?,
            list_duration: HistogramVec::new(duration, &["resource"])?,
            probes: Arc::default(),
        };
        registry.register(Box::new(metrics.lists.clone()))?;
        registry.register(Box::new(metrics.watches.clone()))?;
        registry.register(Box::new(metrics.errors.clone()))?;
        registry.register(Box::new(metrics.relists.clone()))?;
        registry.register(Box::new(metrics.list_duration.clone()))?;
        registry.register(Box::new(Gauges::new(Arc::clone(&metrics.probes))?))?;
        Ok(metrics)
    }

    pub(crate) fn of_resource(&self, resource: &'static str) -> Counters {
        Counters {
            lists: self.lists.with_label_values(&[resource]),
            watches: self.watches.with_label_values(&[resource]),
            list_duration: self.list_duration.with_label_values(&[resource]),
            errors: self.errors.clone(),
            relists: self.relists.clone(),
            resource,
        }
    }

    pub(crate) fn watch(&self, probe: Weak<dyn Probe>) {
        let mut probes = self.probes.lock();
        probes.retain(|old| old.strong_count() > 0);
        probes.push(probe);
    }
}

/// The metrics one informer writes itself.
pub(crate) struct Counters {
    pub(crate) lists: IntCounter,
    pub(crate) watches: IntCounter,
    pub(crate) list_duration: Histogram,
    errors: IntCounterVec,
    relists: IntCounterVec,
    resource: &'static str,
}

impl Counters {
    pub(crate) fn error(&self, reason: &'static str) {
        self.errors.with_label_values(&[self.resource, reason]).inc();
    }

    pub(crate) fn relist(&self, cause: &'static str) {
        self.relists.with_label_values(&[self.resource, cause]).inc();
    }
}

/// The metrics read at scrape.
struct Gauges {
    objects: GaugeVec,
    synced: GaugeVec,
    silent: GaugeVec,
    version: GaugeVec,
    probes: Probes,
}

impl Gauges {
    fn new(probes: Probes) -> Result<Self, prometheus::Error> {
        let gauge =
            |name: &str, help: &str, labels: &[&str]| GaugeVec::new(Opts::new(name, help), labels);
        Ok(Self {
            objects: gauge("icm_informer_objects", "Objects in the store", &["resource"])?,
            synced: gauge(
                "icm_informer_synced",
                "1 when the first list has been delivered to all handlers",
                &["resource"],
            )?,
            silent: gauge(
                "icm_informer_last_event_seconds",
                "Time since the server's last event, bookmark or list",
                &["resource"],
            )?,
            version: gauge(
                "informer_store_resource_version",
                "Newest resource version seen, modulo 1e15",
                &["name", "group", "version", "resource"],
            )?,
            probes,
        })
    }

    fn families(&self) -> [&GaugeVec; 4] {
        [&self.objects, &self.synced, &self.silent, &self.version]
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        self.families().into_iter().flat_map(Collector::desc).collect()
    }

    #[allow(clippy::cast_precision_loss, reason = "a gauge is an f64, exact up to 2⁵³")]
    fn collect(&self) -> Vec<MetricFamily> {
        // Held to the end: two scrapes at once would reset each other's gauges.
        let probes = self.probes.lock();
        self.families().into_iter().for_each(GaugeVec::reset);
        // In order of birth: of two informers of one resource, the younger replaces the other.
        for sample in probes.iter().filter_map(Weak::upgrade).map(|probe| probe.sample()) {
            let [group, version, resource] = sample.labels;
            self.objects.with_label_values(&[resource]).set(sample.objects as f64);
            self.synced.with_label_values(&[resource]).set(f64::from(u8::from(sample.synced)));
            self.silent.with_label_values(&[resource]).set(sample.silent.as_secs_f64());
            let labels = [MANAGER, group, version, resource];
            self.version.with_label_values(&labels).set((sample.version % EXACT) as f64);
        }
        self.families().into_iter().flat_map(Collector::collect).collect()
    }
}

/// Label `name` of upstream's metric: the process that informs itself.
const MANAGER: &str = "infra-controller-manager";
/// Upstream cuts the version to what a float holds exactly.
const EXACT: u64 = 1_000_000_000_000_000;
