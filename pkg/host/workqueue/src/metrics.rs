//! The `workqueue_*` metrics, named and bucketed as every controller manager has them,
//! label `name`.
//!
//! Counters and histograms are written as things happen. Depth and the two ages of running work
//! are read from the queues when somebody scrapes, so they cost nothing in between and cannot
//! drift.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
    exponential_buckets,
};

/// What a scrape reads from one queue.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) depth: usize,
    /// Sum over all keys in hand.
    pub(crate) unfinished: Duration,
    /// The key longest in hand.
    pub(crate) longest: Duration,
    /// Keys whose last handling panicked.
    pub(crate) quarantined: usize,
}

/// A queue that can be read at scrape.
pub(crate) trait Probe: Send + Sync {
    fn name(&self) -> &str;
    fn sample(&self) -> Sample;
}

/// Metrics of all work queues of one registry; cheap to clone.
#[derive(Clone)]
pub struct QueueMetrics {
    adds: IntCounterVec,
    retries: IntCounterVec,
    queue_duration: HistogramVec,
    work_duration: HistogramVec,
    probes: Arc<Mutex<Vec<Weak<dyn Probe>>>>,
}

impl QueueMetrics {
    /// Registers the metrics; call it once per registry.
    ///
    /// # Errors
    /// When the registry holds one of these names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let label = &["name"];
        let counter = |name: &str, help: &str| IntCounterVec::new(Opts::new(name, help), label);
        let histogram = |name: &str, help: &str| {
            let buckets = exponential_buckets(1e-8, 10.0, 10)?;
            HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), label)
        };
        let metrics = Self {
            adds: counter("workqueue_adds_total", "Keys that became due, repeats left out")?,
            retries: counter("workqueue_retries_total", "Keys put back to be handled later")?,
            queue_duration: histogram(
                "workqueue_queue_duration_seconds",
                "Time from a key becoming due until a worker took it",
            )?,
            work_duration: histogram(
                "workqueue_work_duration_seconds",
                "Time a worker spent on one key",
            )?,
            probes: Arc::default(),
        };
        registry.register(Box::new(metrics.adds.clone()))?;
        registry.register(Box::new(metrics.retries.clone()))?;
        registry.register(Box::new(metrics.queue_duration.clone()))?;
        registry.register(Box::new(metrics.work_duration.clone()))?;
        registry.register(Box::new(Gauges::new(Arc::clone(&metrics.probes))?))?;
        Ok(metrics)
    }

    pub(crate) fn of_queue(&self, name: &str) -> Counters {
        Counters {
            adds: self.adds.with_label_values(&[name]),
            retries: self.retries.with_label_values(&[name]),
            queue_duration: self.queue_duration.with_label_values(&[name]),
            work_duration: self.work_duration.with_label_values(&[name]),
        }
    }

    pub(crate) fn watch(&self, probe: Weak<dyn Probe>) {
        let mut probes = self.probes.lock();
        probes.retain(|old| old.strong_count() > 0);
        probes.push(probe);
    }
}

/// The metrics one queue writes itself.
pub(crate) struct Counters {
    pub(crate) adds: IntCounter,
    pub(crate) retries: IntCounter,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
}

/// The metrics read at scrape.
struct Gauges {
    depth: GaugeVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
    quarantined: GaugeVec,
    probes: Arc<Mutex<Vec<Weak<dyn Probe>>>>,
}

impl Gauges {
    fn new(probes: Arc<Mutex<Vec<Weak<dyn Probe>>>>) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str| GaugeVec::new(Opts::new(name, help), &["name"]);
        Ok(Self {
            depth: gauge("workqueue_depth", "Keys due and not taken by a worker")?,
            unfinished: gauge(
                "workqueue_unfinished_work_seconds",
                "Sum of the time spent so far on all keys in hand; growth means stuck workers",
            )?,
            longest: gauge(
                "workqueue_longest_running_processor_seconds",
                "Time spent so far on the key longest in hand",
            )?,
            quarantined: gauge(
                "icm_workqueue_quarantined_keys",
                "Keys that are kept away for a while because their last handling panicked",
            )?,
            probes,
        })
    }

    fn all(&self) -> [&GaugeVec; 4] {
        [&self.depth, &self.unfinished, &self.longest, &self.quarantined]
    }
}

#[allow(clippy::cast_precision_loss, reason = "no queue holds 2⁵³ keys")]
fn float(keys: usize) -> f64 {
    keys as f64
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        self.all().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // Held to the end: two scrapes at once would add to the same gauges.
        let probes = self.probes.lock();
        for gauge in self.all() {
            gauge.reset();
        }
        for probe in probes.iter().filter_map(Weak::upgrade) {
            let (name, sample) = ([probe.name()], probe.sample());
            // A restarted controller has two queues of one name until its old one is gone.
            self.depth.with_label_values(&name).add(float(sample.depth));
            self.quarantined.with_label_values(&name).add(float(sample.quarantined));
            self.unfinished.with_label_values(&name).add(sample.unfinished.as_secs_f64());
            let longest = self.longest.with_label_values(&name);
            longest.set(longest.get().max(sample.longest.as_secs_f64()));
        }
        self.all().into_iter().flat_map(Collector::collect).collect()
    }
}
