//! `icm_reconcile_total` and `icm_reconcile_duration_seconds`: what became of the keys of a
//! controller, whatever its queues are called.

use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounterVec, Registry};

const BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];

/// How one handling of a key ended; the label `result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    RequeueAfter,
    Requeue,
    Throttled,
    Error,
    Timeout,
    Panic,
}

impl Outcome {
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
    ///
    /// # Errors
    /// When the registry holds one of these names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let total = metrics::counter(
            registry,
            "icm_reconcile_total",
            "Handlings of keys by result: success, requeue_after (another look was asked for), \
             requeue (tried again, no failure), throttled, error, timeout, panic.",
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

    /// Those of one controller, shown as zero from now on.
    pub fn of_controller(&self, controller: &str) -> ControllerMetrics {
        for outcome in Outcome::ALL {
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
    pub(crate) fn ended(&self, outcome: Outcome, took: Duration) {
        self.total.with_label_values(&[&*self.controller, outcome.label()]).inc();
        self.duration.observe(took.as_secs_f64());
    }
}
