//! The gauges of the informers' stores, read when somebody scrapes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::Family;
use parking_lot::Mutex;
use prometheus::Registry;
use prometheus::proto::Metric;

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

/// Registers the gauges that are read from `probes` at each scrape. `product` is the label `name`
/// of upstream's.
pub(crate) fn register(
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
            "1 while the kind is not served, or not for this process",
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
            "[ALPHA] Objects that wait to be told to handlers: none, for they are told as they are read",
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
