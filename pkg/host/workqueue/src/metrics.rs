//! The metrics of queues and of handlings. The `workqueue_*` metrics are named and bucketed as every
//! controller manager has them; depth and the ages of running work are read at the scrape, so they cost
//! nothing in between and cannot drift. `icm_reconcile_*` say what became of the keys of a controller.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::Family;
use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, Registry, exponential_buckets,
};

/// State of one queue at a scrape.
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
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str| metrics::counter(registry, name, help, &["name"]);
        let buckets = exponential_buckets(1e-8, 10.0, 10)?;
        let histogram =
            |name: &str, help: &str| metrics::histogram(registry, name, help, &["name"], &buckets);
        let probes = Arc::default();
        show_samples(registry, Arc::clone(&probes))?;
        Ok(Self {
            adds: counter("workqueue_adds_total", "Keys that became due, without repeats")?,
            retries: counter("workqueue_retries_total", "Keys put back to be handled later")?,
            queue_duration: histogram(
                "workqueue_queue_duration_seconds",
                "Time from a key becoming due until a worker took it",
            )?,
            work_duration: histogram(
                "workqueue_work_duration_seconds",
                "Time a worker spent on one key",
            )?,
            probes,
        })
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

fn show_samples(
    registry: &Registry,
    probes: Arc<Mutex<Vec<Weak<dyn Probe>>>>,
) -> Result<(), prometheus::Error> {
    let gauge = |name: &str, help: &str| Family::gauge(name, help, &["name"]);
    let families = [
        gauge("workqueue_depth", "Keys due and not taken by a worker")?,
        gauge(
            "workqueue_unfinished_work_seconds",
            "Sum of the time spent so far on all keys being handled; growth means stuck workers",
        )?,
        gauge(
            "workqueue_longest_running_processor_seconds",
            "Time spent so far on the key that has been handled longest",
        )?,
        gauge(
            "icm_workqueue_quarantined_keys",
            "Keys in quarantine because their last handling panicked",
        )?,
    ];
    metrics::at_scrape(registry, families, move |[depth, unfinished, longest, quarantined]| {
        // A restarted controller has two queues of one name until its old one is gone.
        let mut samples = BTreeMap::<_, Sample>::new();
        for probe in probes.lock().iter().filter_map(Weak::upgrade) {
            *samples.entry(probe.name().to_owned()).or_default() += probe.sample();
        }
        let each = |family: &Family, value: fn(&Sample) -> f64| {
            let series = |(name, sample): (&String, _)| family.series(&[name], value(sample));
            samples.iter().map(series).collect()
        };
        [
            each(depth, |sample| float(sample.depth)),
            each(unfinished, |sample| sample.unfinished.as_secs_f64()),
            each(longest, |sample| sample.longest.as_secs_f64()),
            each(quarantined, |sample| float(sample.quarantined)),
        ]
    })
}

impl std::ops::AddAssign for Sample {
    fn add_assign(&mut self, other: Self) {
        self.depth += other.depth;
        self.unfinished += other.unfinished;
        self.longest = self.longest.max(other.longest);
        self.quarantined += other.quarantined;
    }
}

#[allow(clippy::cast_precision_loss, reason = "no queue holds 2⁵³ keys")]
fn float(keys: usize) -> f64 {
    keys as f64
}

const BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];

/// How one handling of a key ended; the label `result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlingResult {
    Success,
    RequeueAfter,
    Requeue,
    Throttled,
    Error,
    Timeout,
    Panic,
}

impl HandlingResult {
    const ALL: [Self; 7] = [
        Self::Success,
        Self::RequeueAfter,
        Self::Requeue,
        Self::Throttled,
        Self::Error,
        Self::Timeout,
        Self::Panic,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Requeue => "requeue",
            Self::Throttled => "throttled",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Panic => "panic",
        }
    }
}

/// The metrics of all controllers of one registry; cheap to clone.
#[derive(Clone)]
pub struct ReconcileMetrics {
    total: IntCounterVec,
    duration: HistogramVec,
}

impl ReconcileMetrics {
    /// Registers the metrics; call it once per registry.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let total = metrics::counter(
            registry,
            "icm_reconcile_total",
            "Reconciles of keys by result: success, requeue_after (repeated later), requeue \
             (tried again, no failure), throttled, error, timeout, panic.",
            &["controller", "result"],
        )?;
        let duration = metrics::histogram(
            registry,
            "icm_reconcile_duration_seconds",
            "Time one handling of a key took, waits for the throttle and for caches included.",
            &["controller"],
            &BUCKETS,
        )?;
        Ok(Self { total, duration })
    }

    /// The metrics of one controller, shown as zero from now on.
    pub fn of_controller(&self, controller: &str) -> ControllerMetrics {
        for outcome in HandlingResult::ALL {
            self.total.with_label_values(&[controller, outcome.label()]);
        }
        ControllerMetrics {
            controller: controller.into(),
            total: self.total.clone(),
            duration: self.duration.with_label_values(&[controller]),
        }
    }
}

/// The metrics of one controller.
#[derive(Clone)]
pub struct ControllerMetrics {
    controller: Box<str>,
    total: IntCounterVec,
    duration: Histogram,
}

impl ControllerMetrics {
    pub(crate) fn ended(&self, outcome: HandlingResult, took: Duration) {
        self.total.with_label_values(&[&*self.controller, outcome.label()]).inc();
        self.duration.observe(took.as_secs_f64());
    }
}
