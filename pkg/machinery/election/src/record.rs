//! The record in the Lease and the rules on it, without I/O and without a clock of its own.
//!
//! Used by [`crate::elector`]. A candidate never compares a timestamp of the record with its own
//! clock, since clocks differ between machines: it remembers when, by its own monotonic clock, it
//! last saw the record *change*, and takes a record for dead that did not change for the record's
//! own lease duration (`host.md 3.2`, Expiry test).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// The fields of a Lease's spec that leadership is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LeaseRecord {
    /// Identity of the holder; empty when the lease is free.
    pub(crate) holder: String,
    /// `leaseDurationSeconds`, absent in records of other tools only.
    pub(crate) lease_seconds: Option<i32>,
    /// When the holder took the lease, by the holder's clock.
    pub(crate) acquired: Option<Timestamp>,
    /// When the holder last renewed, by the holder's clock.
    pub(crate) renewed: Option<Timestamp>,
    /// How often the lease went from one holder to another.
    pub(crate) transitions: i32,
}

impl LeaseRecord {
    /// Reads the record of `lease`; a Lease without a spec is a free one.
    pub(crate) fn of(lease: &Lease) -> Self {
        let Some(spec) = &lease.spec else { return Self::default() };
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            lease_seconds: spec.lease_duration_seconds,
            acquired: spec.acquire_time.as_ref().map(|t| t.0),
            renewed: spec.renew_time.as_ref().map(|t| t.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// `lease` with its whole spec replaced by this record and its metadata kept.
    pub(crate) fn into_lease(self, lease: Lease) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(self.holder),
            lease_duration_seconds: self.lease_seconds,
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            ..LeaseSpec::default()
        };
        Lease { metadata: lease.metadata, spec: Some(spec) }
    }

    /// The record with which `me` takes or keeps the lease, `previous` being the record it
    /// replaces (`None` when there is no Lease).
    ///
    /// The acquire time stays while `me` holds; transitions grow when the lease comes from anyone
    /// else, a holder that released it included, and start at 0 (`host.md 3.2`).
    pub(crate) fn claim(previous: Option<&Self>, me: &str, seconds: i32, now: Timestamp) -> Self {
        let mut renewed = to_micros(now);
        let (acquired, transitions) = match previous {
            None => (renewed, 0),
            Some(p) if p.holder == me => {
                // Others see a renewal by the change of this field only.
                if p.renewed == Some(renewed) {
                    renewed = renewed
                        .checked_add(SignedDuration::from_micros(1))
                        .unwrap_or(Timestamp::UNIX_EPOCH);
                }
                (p.acquired.unwrap_or(renewed), p.transitions)
            }
            Some(p) => (renewed, p.transitions.saturating_add(1)),
        };
        Self {
            holder: me.to_owned(),
            lease_seconds: Some(seconds),
            acquired: Some(acquired),
            renewed: Some(renewed),
            transitions,
        }
    }

    /// The record with which the holder gives the lease back: no holder, one second, both times
    /// now, transitions kept (`host.md 3.2`, Release).
    pub(crate) fn release(&self, now: Timestamp) -> Self {
        let now = to_micros(now);
        Self {
            holder: String::new(),
            lease_seconds: Some(1),
            acquired: Some(now),
            renewed: Some(now),
            transitions: self.transitions,
        }
    }

    fn lease_duration(&self, fallback: Duration) -> Duration {
        match self.lease_seconds.and_then(|s| u64::try_from(s).ok()) {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds),
            _ => fallback,
        }
    }
}

/// The precision of the wire, so that a record equals itself after a round trip.
fn to_micros(t: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(t.as_microsecond()).unwrap_or(t)
}

/// What the lease means to one candidate at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody holds it: never created, or released.
    Free,
    /// We hold it: our own write succeeded although its answer was lost.
    Ours,
    /// Another holder let it run out without releasing it.
    Expired {
        /// The silent holder.
        holder: String,
    },
    /// Another holder renewed it lately.
    Held {
        /// The living holder.
        holder: String,
    },
}

/// What one candidate knows of the lease, and since when.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    last: Option<(LeaseRecord, Instant)>,
}

impl Observed {
    /// Takes note of the record read at `now`; `None` when the Lease does not exist.
    ///
    /// Only a change moves the moment from which expiry counts. A Lease that vanished leaves the
    /// last record standing: its holder still believes in it, so deleting a Lease does not make
    /// a second leader at once.
    pub(crate) fn note(&mut self, record: Option<LeaseRecord>, now: Instant) {
        let Some(record) = record else { return };
        match &self.last {
            Some((last, _)) if *last == record => {}
            _ => self.last = Some((record, now)),
        }
    }

    /// What the lease means to `me` at `now`; `fallback` is the lease duration of records
    /// that carry none.
    pub(crate) fn standing(&self, me: &str, now: Instant, fallback: Duration) -> Standing {
        let Some((record, since)) = &self.last else { return Standing::Free };
        let holder = record.holder.clone();
        if holder.is_empty() {
            Standing::Free
        } else if holder == me {
            Standing::Ours
        } else if now.duration_since(*since) >= record.lease_duration(fallback) {
            Standing::Expired { holder }
        } else {
            Standing::Held { holder }
        }
    }
}

#[cfg(test)]
mod tests;
