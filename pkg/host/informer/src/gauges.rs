//! The gauges of the informers' stores, read when somebody scrapes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts};

/// The labels of upstream's metrics.
pub(crate) const UPSTREAM: [&str; 4] = ["name", "group", "version", "resource"];

/// What a scrape reads from one informer.
pub(crate) struct Sample {
    pub(crate) resource: Arc<str>,
    /// What of the resource; empty for all of it.
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

pub(crate) struct Gauges {
    product: String,
    objects: GaugeVec,
    synced: GaugeVec,
    dormant: GaugeVec,
    silent: GaugeVec,
    version: GaugeVec,
    queued: GaugeVec,
    probes: Probes,
}

impl Gauges {
    pub(crate) fn new(product: &str, probes: Probes) -> Result<Self, prometheus::Error> {
        let source = &["resource", "source"][..];
        let gauge =
            |name: &str, help: &str, labels: &[&str]| GaugeVec::new(Opts::new(name, help), labels);
        Ok(Self {
            product: product.to_owned(),
            objects: gauge("icm_informer_objects", "Objects in the store", source)?,
            synced: gauge(
                "icm_informer_synced",
                "1 when the first list has been delivered to all handlers",
                source,
            )?,
            dormant: gauge(
                "icm_informer_dormant",
                "1 while the kind is not served, or not for this process",
                source,
            )?,
            silent: gauge(
                "icm_informer_last_event_seconds",
                "Time since the server's last event, bookmark or list",
                source,
            )?,
            version: gauge(
                "informer_store_resource_version",
                "Newest resource version seen, modulo 1e15",
                &UPSTREAM,
            )?,
            queued: gauge(
                "informer_queued_items",
                "[ALPHA] Objects that wait to be told to handlers: none, for they are told as they are read",
                &UPSTREAM,
            )?,
            probes,
        })
    }

    fn families(&self) -> [&GaugeVec; 6] {
        [&self.objects, &self.synced, &self.dormant, &self.silent, &self.version, &self.queued]
    }

    #[allow(clippy::cast_precision_loss, reason = "a gauge is an f64, exact up to 2⁵³")]
    fn show(&self, sample: &Sample) {
        let source = [&*sample.resource, &sample.selection];
        let flag = |value: bool| f64::from(u8::from(value));
        self.objects.with_label_values(&source).set(sample.objects as f64);
        self.synced.with_label_values(&source).set(flag(sample.synced));
        self.dormant.with_label_values(&source).set(flag(sample.dormant));
        self.silent.with_label_values(&source).set(sample.silent.as_secs_f64());
        let name = [&*self.product, &sample.selection].join(" ");
        let labels = [name.trim(), &sample.group, &sample.api_version, &sample.resource];
        self.version.with_label_values(&labels).set((sample.version % EXACT) as f64);
        self.queued.with_label_values(&labels).set(0.0);
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        self.families().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // Held to the end: two scrapes at once would reset each other's gauges.
        let probes = self.probes.lock();
        self.families().into_iter().for_each(GaugeVec::reset);
        // Of one source there may be several informers, whose objects are read as different types.
        let mut seen = HashMap::new();
        for probe in probes.iter().filter_map(Weak::upgrade) {
            let mut sample = probe.sample();
            let alike = seen.entry((Arc::clone(&sample.resource), sample.selection.clone()));
            let number = alike.and_modify(|number| *number += 1).or_insert(1);
            if *number > 1 {
                sample.selection = match &*sample.selection {
                    "" => format!("#{number}"),
                    selection => format!("{selection} #{number}"),
                };
            }
            self.show(&sample);
        }
        self.families().into_iter().flat_map(Collector::collect).collect()
    }
}

/// Upstream cuts the version to what a float holds exactly.
const EXACT: u64 = 1_000_000_000_000_000;
