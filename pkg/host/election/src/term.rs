//! The term of leadership as the other threads see it: two numbers, no lock.
//!
//! Written by the lease thread ([`crate::elector`]); read by the watchdog, the health check and
//! the metrics. All times are CLOCK_BOOTTIME (rule:lease-time-counts-suspend).
//!
//! The metrics of leadership, by the name of the lease.
//!
//! Made once by the command with the process's registry and handed to every election, so that a
//! process may hold several leases.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use metrics::Family;
use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
};
use resilience::{BootInstant, ClockReading, Fence};
use tokio::time::Instant;

use crate::record::LeaseRecord;
use crate::sync::{AtomicU64, Ordering};

/// Value without a limit: the watchdog has nothing to enforce.
const NEVER: u64 = u64::MAX;

/// The moment a write of the lease left, on all clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// For the elector's own deadlines; the clock that tests pause.
    pub(crate) at: Instant,
    /// For the fence and the watchdog.
    pub(crate) clocks: ClockReading,
}

impl Moment {
    pub(crate) fn now(fence: &Fence) -> Self {
        Self { at: Instant::now(), clocks: fence.read_clocks() }
    }
}

/// When the term was last renewed and when the process must be gone, in nanoseconds since boot; and what
/// was read of the Lease on the way.
///
/// A reader that finds the fence open finds a limit, or that the term has ended; one that finds that the limit has
/// ended finds the fence closed.
#[derive(Debug)]
pub(crate) struct Term {
    fence: Fence,
    renewed: AtomicU64,
    limit: AtomicU64,
    /// The newest resource version of the Lease that any answer had, and the Lease of the last answer.
    lease: Mutex<(u64, Won)>,
}

impl Term {
    /// A term that does not lead and has no limit. It opens and closes this fence, and has its clocks.
    pub(crate) fn new(fence: &Fence) -> Self {
        Self {
            fence: fence.clone(),
            renewed: AtomicU64::new(NEVER),
            limit: AtomicU64::new(NEVER),
            lease: Mutex::default(),
        }
    }

    /// Notes the Lease of an answer; `None` if the server does not have it.
    pub(crate) fn note(&self, lease: Option<&Lease>) {
        let version =
            lease.and_then(|lease| lease.metadata.resource_version.as_ref()?.parse().ok());
        let version: u64 = version.unwrap_or_default();
        let (newest, won) = &mut *self.lease.lock();
        won.lease_went_back |= version < *newest;
        *newest = version.max(*newest);
        if let Some(lease) = lease {
            won.transitions = LeaseRecord::of(lease).transitions;
        }
    }

    pub(crate) fn won(&self) -> Won {
        self.lease.lock().1
    }

    /// We lead; the process must be gone `allowed` after `start` unless this is called again.
    pub(crate) fn renew(&self, start: BootInstant, allowed: Duration) {
        self.renewed.store(start.as_nanos(), Ordering::Relaxed);
        self.limit.store(start.saturating_add(allowed).as_nanos(), Ordering::Relaxed);
    }

    /// We lead no more; the process must be gone after `grace`, or at the earlier limit it had.
    pub(crate) fn lose(&self, grace: Duration) {
        let soon = self.now().saturating_add(grace);
        self.limit.fetch_min(soon.as_nanos(), Ordering::Relaxed);
        self.renewed.store(NEVER, Ordering::Relaxed);
    }

    /// We lead no more and gave up every right to write: the process may take its time.
    pub(crate) fn end(&self) {
        self.limit.store(NEVER, Ordering::Release);
        self.renewed.store(NEVER, Ordering::Relaxed);
    }

    /// The write that left at `start` succeeded: the process lives on for `allowed`, and writes pass for `open`.
    pub(crate) fn grant(&self, start: ClockReading, allowed: Duration, open: Duration) {
        self.renew(start.boot, allowed);
        self.fence.open_for(start, open);
    }

    /// The lease is lost: no write passes, and the process must be gone after `grace`.
    pub(crate) fn forfeit(&self, grace: Duration) {
        self.fence.close();
        self.lose(grace);
    }

    /// Gives up every right. First the fence: until it is closed, a stuck process must be ended in time.
    pub(crate) fn withdraw(&self) {
        self.fence.close();
        self.end();
    }

    /// Since the start of the last successful renewal; `None` while not leading.
    pub(crate) fn age(&self) -> Option<Duration> {
        match self.renewed.load(Ordering::Relaxed) {
            NEVER => None,
            renewed => Some(self.now().saturating_since(BootInstant::from_nanos(renewed))),
        }
    }

    /// The boot clock.
    pub(crate) fn now(&self) -> BootInstant {
        self.fence.read_clocks().boot
    }

    /// Whether the process has outlived its right to exist at `now`.
    pub(crate) fn overdue(&self, now: BootInstant) -> bool {
        now.as_nanos() >= self.limit.load(Ordering::Acquire)
    }

    /// Whether there is a limit to enforce.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.load(Ordering::Acquire) != NEVER
    }
}

/// Where this process stands, as published by [`crate::Elector::leadership`].
///
/// `Standby` → `Leading` → `Lost`, never back (rule:lease-lost-is-final). After a release or an
/// abandonment the state is `Standby` with no holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// This process does not lead.
    Standby {
        /// The holder last seen.
        holder: Option<String>,
    },
    /// This process leads.
    Leading,
    /// The lease is lost; the fence is closed and the process must exit 1 within a second.
    Lost {
        /// Why, for the log.
        reason: String,
    },
}

/// The Lease when this process won it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Won {
    /// How often the lease went from one holder to another.
    pub transitions: i32,
    /// An answer showed an older version of the Lease than an answer before it, or no Lease any more, as
    /// after a restore of etcd.
    pub lease_went_back: bool,
}

/// How the attempt to give the lease back ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// The lease is free: the next leader starts at once.
    Freed,
    /// This process did not hold it.
    NotHeld,
    /// The server did not confirm; the next leader may have to wait for the lease to expire.
    LeftToExpire {
        /// Why, for the log.
        reason: String,
    },
}

/// Something to publish as an Event of type Normal and reason `LeaderElection` on the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseEvent {
    /// `metadata.uid` of the Lease, without which `kubectl describe` does not show the event.
    pub lease_uid: String,
    /// `<identity> became leader` or `<identity> stopped leading`.
    pub message: String,
}

/// Whether a leader before this process may have worked on this cluster; why that cannot be said.
pub type PredecessorAnswer = Pin<Box<dyn Future<Output = Result<bool, String>> + Send>>;

/// Finds out whether another instance may still lead although the Lease is gone. Called on
/// the lease thread, before this process leads and only while there is no Lease.
pub type PredecessorCheck = Box<dyn Fn() -> PredecessorAnswer + Send + Sync>;

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
