//! The metrics of leadership, by the name of the lease.
//!
//! Made once by the command with the process's registry and handed to every election, so that a
//! process may hold several leases.

use std::sync::{Arc, Weak};

use metrics::Family;
use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
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
        let label = &["name"];
        let terms = Terms::default();
        show_ages(registry, Arc::clone(&terms))?;
        Ok(Self {
            master: metrics::gauge(
                registry,
                "leader_election_master_status",
                "Whether this process leads under the lease `name`: 1 yes, 0 no.",
                label,
            )?,
            slow_path: metrics::counter(
                registry,
                "leader_election_slowpath_total",
                "Renewals of the lease `name` that had to read it first.",
                label,
            )?,
            renew: metrics::histogram(
                registry,
                "icm_lease_renew_duration_seconds",
                "Time from sending a successful write of the lease `name` to its answer.",
                label,
                &RENEW_BUCKETS,
            )?,
            terms,
        })
    }

    /// The series of the lease `name`, created at 0; its age is read from `term` at each scrape.
    /// `None` while another election under that name runs: their series would be one.
    pub(crate) fn of_lease(&self, name: &str, term: &Arc<Term>) -> Option<LeaseMetrics> {
        let mut terms = self.terms.lock();
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

/// Shows the age of the last renewal, computed at the scrape: a gauge set by the elector would stand
/// still exactly when the elector does. Absent while we do not lead.
fn show_ages(registry: &Registry, terms: Terms) -> Result<(), prometheus::Error> {
    let help = "Seconds since the start of the last successful renewal of the lease `name`, while leading.";
    let family = Family::gauge("icm_lease_seconds_since_renew", help, &["name"])?;
    metrics::at_scrape(registry, [family], move |[family]| {
        let terms = terms.lock();
        let ages = terms.iter().filter_map(|(name, term)| Some((name, term.upgrade()?.age()?)));
        [ages.map(|(name, age)| family.series(&[name], age.as_secs_f64())).collect()]
    })
}

#[cfg(test)]
mod tests;
