//! The term of leadership as the other threads see it: two numbers, no lock.
//!
//! Written by the lease thread ([`crate::elector`]); read by the watchdog, the health check and
//! the metrics. All times are CLOCK_BOOTTIME (rule:lease-time-counts-suspend).

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use resilience::BootInstant;
use tokio::time::Instant;

/// Value without a limit: the watchdog has nothing to enforce.
const NEVER: u64 = u64::MAX;

/// The moment a write of the lease left, on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// For the elector's own deadlines; the clock that tests pause.
    pub(crate) at: Instant,
    /// For the fence and the watchdog.
    pub(crate) boot: BootInstant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), boot: BootInstant::now() }
    }
}

/// When the term was last renewed and when the process must be gone, in nanoseconds since boot.
///
/// Relaxed ordering is enough: each number stands alone and nothing is published through it.
#[derive(Debug)]
pub(crate) struct Term {
    renewed: AtomicU64,
    limit: AtomicU64,
}

impl Term {
    /// A term that does not lead and has no limit.
    pub(crate) fn new() -> Self {
        Self { renewed: AtomicU64::new(NEVER), limit: AtomicU64::new(NEVER) }
    }

    /// We lead; the process must be gone `allowed` after `start` unless this is called again.
    pub(crate) fn renew(&self, start: BootInstant, allowed: Duration) {
        self.renewed.store(start.as_nanos(), Ordering::Relaxed);
        self.limit.store(start.saturating_add(allowed).as_nanos(), Ordering::Relaxed);
    }

    /// We lead no more; the process must be gone after `grace`, or at the earlier limit it had.
    pub(crate) fn lose(&self, grace: Duration) {
        let soon = BootInstant::now().saturating_add(grace);
        self.limit.fetch_min(soon.as_nanos(), Ordering::Relaxed);
        self.renewed.store(NEVER, Ordering::Relaxed);
    }

    /// We lead no more and gave up every right to write: the process may take its time.
    pub(crate) fn end(&self) {
        self.limit.store(NEVER, Ordering::Relaxed);
        self.renewed.store(NEVER, Ordering::Relaxed);
    }

    /// Since the start of the last successful renewal; `None` while not leading.
    pub(crate) fn age(&self) -> Option<Duration> {
        match self.renewed.load(Ordering::Relaxed) {
            NEVER => None,
            renewed => Some(BootInstant::from_nanos(renewed).elapsed()),
        }
    }

    /// Whether the process has outlived its right to exist at `now`.
    pub(crate) fn overdue(&self, now: BootInstant) -> bool {
        now.as_nanos() >= self.limit.load(Ordering::Relaxed)
    }

    /// Whether there is a limit to enforce.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.load(Ordering::Relaxed) != NEVER
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn a_candidate_has_no_age_and_no_limit() {
        let term = Term::new();
        assert_eq!(term.age(), None);
        assert!(!term.is_limited());
        assert!(!term.overdue(BootInstant::now().saturating_add(secs(1_000_000))));
    }

    #[test]
    fn the_limit_counts_from_the_start_of_the_last_renewal() {
        let term = Term::new();
        let start = BootInstant::now();
        term.renew(start, secs(10));
        assert!(!term.overdue(start.saturating_add(Duration::from_millis(9_999))));
        assert!(term.overdue(start.saturating_add(secs(10))));
        term.renew(start.saturating_add(secs(2)), secs(10));
        assert!(!term.overdue(start.saturating_add(secs(10))));
        assert!(term.overdue(start.saturating_add(secs(12))));
    }

    #[test]
    fn a_lost_term_keeps_the_earlier_of_its_limit_and_the_grace() {
        let long_ago = BootInstant::from_nanos(1);
        let term = Term::new();
        term.renew(BootInstant::now(), secs(100));
        term.lose(secs(2));
        assert_eq!(term.age(), None, "a loser is not an unhealthy leader");
        assert!(!term.overdue(BootInstant::now()));
        assert!(term.overdue(BootInstant::now().saturating_add(secs(2))));
        term.renew(long_ago, Duration::from_nanos(1));
        term.lose(secs(2));
        assert!(term.overdue(BootInstant::now()), "losing must not prolong a life");
    }

    #[test]
    fn a_released_term_enforces_nothing() {
        let term = Term::new();
        term.renew(BootInstant::from_nanos(1), Duration::from_nanos(1));
        assert!(term.overdue(BootInstant::now()));
        term.end();
        assert!(!term.is_limited());
        assert_eq!(term.age(), None);
    }
}
