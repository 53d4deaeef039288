//! The metrics of leadership (`host.md 6`).
//!
//! Made by `cmd` with the process's registry before the election starts, so that the series exist
//! from the first scrape.

use std::sync::{Arc, OnceLock};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

use crate::term::Term;

/// From a fast answer on loopback to the request timeout of the stock timings and beyond.
const RENEW_BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// Metrics of one election; cheap to clone.
#[derive(Clone)]
pub struct ElectionMetrics {
    master: IntGaugeVec,
    slow_path: IntCounterVec,
    renew: Histogram,
    term: Arc<OnceLock<Arc<Term>>>,
}

impl ElectionMetrics {
    /// Registers the metrics in `registry`.
    ///
    /// # Errors
    /// When a metric of one of these names is registered already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            master: IntGaugeVec::new(
                Opts::new(
                    "leader_election_master_status",
                    "Whether this process leads under the lease `name`: 1 yes, 0 no.",
                ),
                &["name"],
            )?,
            slow_path: IntCounterVec::new(
                Opts::new(
                    "leader_election_slowpath_total",
                    "Renewals of the lease `name` that had to read it first.",
                ),
                &["name"],
            )?,
            renew: Histogram::with_opts(
                HistogramOpts::new(
                    "icm_lease_renew_duration_seconds",
                    "Time from sending a successful write of the lease to its answer.",
                )
                .buckets(RENEW_BUCKETS.to_vec()),
            )?,
            term: Arc::default(),
        };
        registry.register(Box::new(metrics.master.clone()))?;
        registry.register(Box::new(metrics.slow_path.clone()))?;
        registry.register(Box::new(metrics.renew.clone()))?;
        registry.register(Box::new(SinceRenew::new(Arc::clone(&metrics.term))?))?;
        Ok(metrics)
    }

    /// The series of the lease `name`, created at 0; its age is read from `term` at each scrape.
    pub(crate) fn into_meters(self, name: &str, term: &Arc<Term>) -> Meters {
        // A second election of the same process would keep the first one's age: one per process.
        self.term.get_or_init(|| Arc::clone(term));
        Meters {
            master: self.master.with_label_values(&[name]),
            slow_path: self.slow_path.with_label_values(&[name]),
            renew: self.renew,
        }
    }
}

/// The series of one lease.
pub(crate) struct Meters {
    pub(crate) master: IntGauge,
    pub(crate) slow_path: IntCounter,
    pub(crate) renew: Histogram,
}

/// Age of the last renewal, computed when scraped: a gauge set by the elector would stand still
/// exactly when the elector does. Absent while we do not lead.
struct SinceRenew {
    gauge: Gauge,
    term: Arc<OnceLock<Arc<Term>>>,
}

impl SinceRenew {
    fn new(term: Arc<OnceLock<Arc<Term>>>) -> Result<Self, prometheus::Error> {
        let gauge = Gauge::new(
            "icm_lease_seconds_since_renew",
            "Seconds since the start of the last successful renewal, while leading.",
        )?;
        Ok(Self { gauge, term })
    }
}

impl Collector for SinceRenew {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(age) = self.term.get().and_then(|term| term.age()) else { return Vec::new() };
        self.gauge.set(age.as_secs_f64());
        self.gauge.collect()
    }
}
