//! The metrics of leadership, by the name of the lease.
//!
//! Made once by the command with the process's registry and handed to every election, so that a
//! process may hold several leases.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

use crate::term::Term;

/// From a fast answer on loopback to the request timeout of the default timings and beyond.
const RENEW_BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// The families of all elections of a process; clones share them.
#[derive(Clone)]
pub struct ElectionMetrics {
    master: IntGaugeVec,
    slow_path: IntCounterVec,
    renew: HistogramVec,
    terms: Terms,
}

/// The elections that run, by the name of their lease.
type Terms = Arc<Mutex<Vec<(String, Weak<Term>)>>>;

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
            renew: HistogramVec::new(
                HistogramOpts::new(
                    "icm_lease_renew_duration_seconds",
                    "Time from sending a successful write of the lease `name` to its answer.",
                )
                .buckets(RENEW_BUCKETS.to_vec()),
                &["name"],
            )?,
            terms: Terms::default(),
        };
        registry.register(Box::new(metrics.master.clone()))?;
        registry.register(Box::new(metrics.slow_path.clone()))?;
        registry.register(Box::new(metrics.renew.clone()))?;
        registry.register(Box::new(SinceRenew::new(Arc::clone(&metrics.terms))?))?;
        Ok(metrics)
    }

    /// The series of the lease `name`, created at 0; its age is read from `term` at each scrape.
    /// `None` while another election under that name runs: their series would be one.
    pub(crate) fn of_lease(&self, name: &str, term: &Arc<Term>) -> Option<LeaseMetrics> {
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        terms.retain(|(_, term)| term.strong_count() > 0);
        if terms.iter().any(|(known, _)| known == name) {
            return None;
        }
        terms.push((name.to_owned(), Arc::downgrade(term)));
        Some(LeaseMetrics {
            master: self.master.with_label_values(&[name]),
            slow_path: self.slow_path.with_label_values(&[name]),
            renew: self.renew.with_label_values(&[name]),
        })
    }
}

/// The series of one lease.
pub(crate) struct LeaseMetrics {
    pub(crate) master: IntGauge,
    pub(crate) slow_path: IntCounter,
    pub(crate) renew: Histogram,
}

/// Age of the last renewal, computed when scraped: a gauge set by the elector would stand still
/// exactly when the elector does. Absent while we do not lead.
struct SinceRenew {
    gauge: GaugeVec,
    terms: Terms,
}

impl SinceRenew {
    fn new(terms: Terms) -> Result<Self, prometheus::Error> {
        let help = "Seconds since the start of the last successful renewal of the lease `name`, while leading.";
        let gauge = GaugeVec::new(Opts::new("icm_lease_seconds_since_renew", help), &["name"])?;
        Ok(Self { gauge, terms })
    }
}

impl Collector for SinceRenew {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        let ages = terms.iter().filter_map(|(name, term)| Some((name, term.upgrade()?.age()?)));
        self.gauge.reset();
        for (name, age) in ages {
            self.gauge.with_label_values(&[name]).set(age.as_secs_f64());
        }
        let mut families = self.gauge.collect();
        families.retain(|family| !family.get_metric().is_empty());
        families
    }
}

#[cfg(test)]
mod tests;
