//! The record in the Lease and what it means to a candidate (rule:lease-expires-by-own-clock,
//! rule:lease-absent-is-not-free). Used by [`crate::elector`]; without I/O or a clock of its own.

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
    /// else, a holder that released it included, and start at 0.
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
    /// now, transitions kept.
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

/// State of the lease for a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// The Lease does not exist, and not for long enough yet: a leader whose Lease was deleted may
    /// not have given up.
    Absent,
    /// The lease has no holder: it was released, or absent for so long that a former leader has
    /// given up.
    Free,
    /// This candidate holds it: its own write succeeded although its answer was lost.
    Ours,
    /// The lease of another holder ran out without a release.
    Expired,
    /// The lease was renewed by another holder lately.
    Held {
        /// The living holder.
        holder: String,
    },
}

/// Knowledge of one candidate about the lease, and since when.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// The record last read, and when it was first read like this.
    last: Option<(LeaseRecord, Instant)>,
    /// Since when there has been no Lease.
    absent_since: Option<Instant>,
}

impl Observed {
    /// Takes note of the record read at `now`; `None` when the Lease does not exist. Only a change
    /// moves the moment from which expiry counts.
    pub(crate) fn note(&mut self, record: Option<LeaseRecord>, now: Instant) {
        let Some(record) = record else {
            self.absent_since.get_or_insert(now);
            return;
        };
        let back = self.absent_since.take().is_some();
        match &self.last {
            Some((last, _)) if *last == record && !back => {}
            _ => self.last = Some((record, now)),
        }
    }

    /// State of the lease for `me` at `now`; `fallback` is the lease duration of leaders whose
    /// record carries none or was never seen.
    pub(crate) fn state(&self, me: &str, now: Instant, fallback: Duration) -> LeaseState {
        let expired = self.expiry(fallback).is_some_and(|expiry| now >= expiry);
        match self.last.as_ref().map(|(record, _)| record.holder.clone()) {
            Some(holder) if holder == me => LeaseState::Ours,
            Some(holder) if !holder.is_empty() && expired => LeaseState::Expired,
            Some(holder) if !holder.is_empty() => LeaseState::Held { holder },
            _ if self.absent_since.is_some() && !expired => LeaseState::Absent,
            _ => LeaseState::Free,
        }
    }

    /// When the leader last seen can be taken for dead. One whose Lease is gone may have renewed
    /// it, or taken it over, unseen until we found it gone.
    pub(crate) fn expiry(&self, fallback: Duration) -> Option<Instant> {
        let seen = self.last.as_ref().map(|(last, at)| (last.lease_duration(fallback), *at));
        match (self.absent_since, seen) {
            (Some(gone), seen) => Some(gone + seen.map_or(fallback, |(own, _)| own.max(fallback))),
            (None, seen) => seen.map(|(own, at)| at + own),
        }
    }
}

#[cfg(test)]
mod tests;
