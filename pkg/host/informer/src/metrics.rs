//! The `icm_informer_*` metrics and upstream's `informer_*`.
//!
//! Counters are written as things happen, for all sources of a resource together; the state of each
//! store is read at the scrape.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kube_api::Kind;
use metrics::{Family, Held, SeriesByLabel};
use parking_lot::Mutex;
use prometheus::proto::Metric;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, Registry};

use crate::source::Source;

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
    pub fn new(registry: &Registry, product: &str) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            metrics::counter(registry, name, help, labels)
        };
        let resource = &["resource"][..];
        let probes = Probes::default();
        register_gauges(registry, product, Arc::clone(&probes))?;
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
                "Time of a list from its request until all handlers have run",
                resource,
                &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0],
            )?,
            processing: metrics::histogram(
                registry,
                "informer_processing_latency_seconds",
                "[ALPHA] Time from an event of a watch until all handlers have run",
                &UPSTREAM,
                &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
            )?,
            product: product.into(),
            resources: SeriesByLabel::default(),
            probes,
            absences: Absences::default(),
        })
    }

    /// The dormant kinds that are logged.
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

/// The labels of upstream's metrics.
pub(crate) const UPSTREAM: [&str; 4] = ["name", "group", "version", "resource"];

/// State of one informer at a scrape.
pub(crate) struct Sample {
    pub(crate) resource: Arc<str>,
    /// Selection of the source; empty for all objects of the resource.
    pub(crate) selection: String,
    pub(crate) group: String,
    pub(crate) api_version: String,
    pub(crate) objects: usize,
    pub(crate) synced: bool,
    pub(crate) dormant: bool,
    pub(crate) silent: Duration,
    pub(crate) version: u64,
}

/// An informer that can be read at scrape.
pub(crate) trait Probe: Send + Sync {
    fn sample(&self) -> Sample;
}

pub(crate) type Probes = Arc<Mutex<Vec<Weak<dyn Probe>>>>;

/// Registers the gauges that are read from `probes` at each scrape. `product` is the label `name`
/// of upstream's.
pub(crate) fn register_gauges(
    registry: &Registry,
    product: &str,
    probes: Probes,
) -> Result<(), prometheus::Error> {
    let source = &["resource", "source"][..];
    let families = [
        Family::gauge("icm_informer_objects", "Objects in the store", source)?,
        Family::gauge(
            "icm_informer_synced",
            "1 when the first list has been delivered to all handlers",
            source,
        )?,
        Family::gauge(
            "icm_informer_dormant",
            "1 while the API server does not serve the kind, or this program must not use its CRD",
            source,
        )?,
        Family::gauge(
            "icm_informer_last_event_seconds",
            "Time since the server's last event, bookmark or list",
            source,
        )?,
        Family::gauge(
            "informer_store_resource_version",
            "Newest resource version seen, modulo 1e15",
            &UPSTREAM,
        )?,
        Family::gauge(
            "informer_queued_items",
            "[ALPHA] Objects that wait for handlers: always 0, because handlers run as objects \
             are read",
            &UPSTREAM,
        )?,
    ];
    let product = product.to_owned();
    metrics::at_scrape(registry, families, move |families| {
        let mut series = [const { Vec::new() }; 6];
        // One source may have several informers, whose objects are read as different types.
        let mut seen = HashMap::new();
        for probe in probes.lock().iter().filter_map(Weak::upgrade) {
            let mut sample = probe.sample();
            let alike = seen.entry((Arc::clone(&sample.resource), sample.selection.clone()));
            let number = alike.and_modify(|number| *number += 1).or_insert(1);
            if *number > 1 {
                sample.selection = match &*sample.selection {
                    "" => format!("#{number}"),
                    selection => format!("{selection} #{number}"),
                };
            }
            let shown = read(families, &product, &sample);
            series.iter_mut().zip(shown).for_each(|(series, metric)| series.push(metric));
        }
        series
    })
}

#[allow(clippy::cast_precision_loss, reason = "a gauge is an f64, exact up to 2⁵³")]
fn read(families: &[Family; 6], product: &str, sample: &Sample) -> [Metric; 6] {
    let [objects, synced, dormant, silent, version, queued] = families;
    let source = [&*sample.resource, &sample.selection];
    let name = [product, &sample.selection].join(" ");
    let labels = [name.trim(), &sample.group, &sample.api_version, &sample.resource];
    let flag = |value: bool| f64::from(u8::from(value));
    [
        objects.series(&source, sample.objects as f64),
        synced.series(&source, flag(sample.synced)),
        dormant.series(&source, flag(sample.dormant)),
        silent.series(&source, sample.silent.as_secs_f64()),
        version.series(&labels, (sample.version % EXACT) as f64),
        queued.series(&labels, 0.0),
    ]
}

/// Upstream cuts the version to what a float holds exactly.
const EXACT: u64 = 1_000_000_000_000_000;

/// The kinds that were told to be dormant. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Absences(Arc<Mutex<HashSet<Absence>>>);

/// A kind, by whose label its CRD has to be ours, on the server of this name.
type Absence = (Arc<str>, Option<Arc<str>>, String);

impl Absences {
    /// Notes a dormant kind; true when that is not logged yet.
    pub(crate) fn begin(&self, source: &Source) -> bool {
        self.0.lock().insert(absence(source))
    }

    /// Notes a kind that is served; true when its absence was logged.
    pub(crate) fn end(&self, source: &Source) -> bool {
        self.0.lock().remove(&absence(source))
    }
}

fn absence(source: &Source) -> Absence {
    (source.server.name().into(), source.managed_by.clone(), source.kind.to_string())
}

#[cfg(test)]
mod tests {
    use api_server_double::Reply;
    use kube_api::{Kind, Resource};

    use super::*;
    use crate::source::Server;

    /// rule:absent-kinds-are-dormant
    #[tokio::test]
    async fn an_absent_kind_is_logged_once_and_its_return_once_by_server_and_label() {
        let client = api_server_double::client(|_| Reply::Refused);
        let source = |server: &str, label: Option<&str>| {
            let kind = Kind::Custom(Resource::cluster("example.io", "v1", "Widget", "widgets"));
            let mut source = Source::new(Server::named(server, client.clone()), kind);
            source.managed_by = label.map(Arc::from);
            source
        };
        let (absences, own) = (Absences::default(), source("", Some("ours")));
        assert!(!absences.end(&own), "it was never away");
        assert!(absences.begin(&own) && !absences.clone().begin(&own));
        assert!(absences.begin(&source("member", Some("ours"))));
        assert!(absences.begin(&source("", None)));
        assert!(absences.end(&own) && !absences.end(&own));
        assert!(absences.begin(&own), "it is away again");
    }
}
