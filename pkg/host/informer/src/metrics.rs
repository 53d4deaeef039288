//! The `icm_informer_*` metrics and upstream's `informer_*`.
//!
//! Counters are written as things happen, for all sources of a resource together; what describes
//! the store of one source is read from the informers when somebody scrapes.

use std::sync::{Arc, Weak};

use kube_api::Kind;
use metrics::{Held, SeriesByLabel};
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, Registry};

use crate::absences::Absences;
use crate::gauges::{self, Probe, Probes, UPSTREAM};

/// Metrics of all informers of one registry; cheap to clone.
#[derive(Clone)]
pub struct InformerMetrics {
    lists: IntCounterVec,
    watches: IntCounterVec,
    errors: IntCounterVec,
    relists: IntCounterVec,
    undecodable: IntCounterVec,
    list_duration: HistogramVec,
    processing: HistogramVec,
    product: Arc<str>,
    /// A kind's series go with its last informer (rule:series-end-with-their-thing).
    resources: SeriesByLabel,
    probes: Probes,
    absences: Absences,
}

impl InformerMetrics {
    /// Registers the metrics; call it once per registry. `product` is this process in label `name`
    /// of upstream's metric.
    ///
    /// # Errors
    /// When the registry holds one of these names already.
    pub fn new(registry: &Registry, product: &str) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            metrics::counter(registry, name, help, labels)
        };
        let resource = &["resource"][..];
        let probes = Probes::default();
        gauges::register(registry, product, Arc::clone(&probes))?;
        Ok(Self {
            lists: counter("icm_informer_lists_total", "Lists begun", resource)?,
            watches: counter(
                "icm_informer_watches_total",
                "Watches opened or tried, streamed lists included",
                resource,
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
            undecodable: counter(
                "icm_informer_undecodable_objects_total",
                "Objects that were skipped because they cannot be read",
                resource,
            )?,
            list_duration: metrics::histogram(
                registry,
                "icm_informer_list_duration_seconds",
                "Time of a list from its request until all handlers have been told",
                resource,
                &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0],
            )?,
            processing: metrics::histogram(
                registry,
                "informer_processing_latency_seconds",
                "[ALPHA] Time from an event of a watch until all handlers have been told",
                &UPSTREAM,
                &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
            )?,
            product: product.into(),
            resources: SeriesByLabel::default(),
            probes,
            absences: Absences::default(),
        })
    }

    /// What the log has told of kinds that are dormant.
    pub(crate) fn absences(&self) -> Absences {
        self.absences.clone()
    }

    pub(crate) fn of_resource(&self, resource: &Arc<str>, kind: &Kind) -> Counters {
        let upstream = [&*self.product, kind.group(), kind.version(), resource];
        let series = self.resources.hold(resource);
        let label: &[&str] = &[resource];
        Counters {
            lists: series.series(&self.lists, label),
            watches: series.series(&self.watches, label),
            list_duration: series.series(&self.list_duration, label),
            processing: series.series(&self.processing, &upstream),
            errors: self.errors.clone(),
            relists: self.relists.clone(),
            undecodable: series.series(&self.undecodable, label),
            resource: Arc::clone(resource),
            series,
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
    pub(crate) processing: Histogram,
    errors: IntCounterVec,
    relists: IntCounterVec,
    pub(crate) undecodable: IntCounter,
    resource: Arc<str>,
    series: Held,
}

impl Counters {
    pub(crate) fn error(&self, reason: &'static str) {
        self.series.series(&self.errors, &[&self.resource, reason]).inc();
    }

    pub(crate) fn relist(&self, cause: &'static str) {
        self.series.series(&self.relists, &[&self.resource, cause]).inc();
    }
}
