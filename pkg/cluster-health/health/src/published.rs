//! [`Health`]: the published verdict of a cluster, with the statuses and reasons of its conditions. [`Published`]: what its
//! object says, or will say once it is written. [`Causes`]: whether a new cause of a failure gets an event.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::{Endpoints, Finding, Moment, Report, Verdict, hash};

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Unknown.
    Unknown,
}

impl Status {
    /// Spelling in the object.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Published verdict of a cluster: one that passed its threshold, or `Unknown`.
/// Everything in the object that is not a time or a message follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// The cluster answers that it is ready.
    Ready,
    /// The cluster gives another answer.
    NotReady,
    /// The cluster does not answer.
    Unreachable,
    /// The cluster cannot be probed.
    Malformed,
    /// The last completed probe is too long ago.
    Unknown,
    /// This process is cut off, and cannot tell whether the cluster is.
    HubPartition,
    /// The cluster is not probed, and does not renew its Lease.
    HeartbeatStopped,
}

impl Health {
    /// All values, for counts by health.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::NotReady,
        Self::Unreachable,
        Self::Malformed,
        Self::Unknown,
        Self::HubPartition,
        Self::HeartbeatStopped,
    ];

    /// Status of the condition `Ready`.
    pub const fn ready(self) -> Status {
        match self {
            Self::Ready => Status::True,
            Self::NotReady | Self::Unreachable | Self::Malformed => Status::False,
            Self::Unknown | Self::HubPartition | Self::HeartbeatStopped => Status::Unknown,
        }
    }

    /// Status of the condition `Offline`.
    pub const fn offline(self) -> Status {
        match self {
            Self::Ready | Self::NotReady => Status::False,
            Self::Unreachable => Status::True,
            Self::Malformed | Self::Unknown | Self::HubPartition | Self::HeartbeatStopped => {
                Status::Unknown
            }
        }
    }

    /// Reason of the condition `Ready`.
    pub const fn ready_reason(self) -> &'static str {
        match self {
            Self::Ready => "ClusterReady",
            Self::NotReady => "ClusterNotReady",
            Self::Unreachable => "ClusterNotReachable",
            Self::Malformed => "MalformedClusterConfig",
            Self::Unknown => "ClusterStatusUnknown",
            Self::HubPartition => "HubPartition",
            Self::HeartbeatStopped => "HeartbeatStopped",
        }
    }

    /// Reason of the condition `Offline`.
    pub const fn offline_reason(self) -> &'static str {
        match self {
            Self::Ready | Self::NotReady => "ClusterReachable",
            Self::Unreachable
            | Self::Malformed
            | Self::Unknown
            | Self::HubPartition
            | Self::HeartbeatStopped => self.ready_reason(),
        }
    }

    /// Reads a health back from the reason of the condition `Ready`.
    pub fn from_ready_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|health| health.ready_reason() == reason)
    }

    /// The health that this status of `Ready` means when its reason is unknown.
    pub const fn from_ready(status: Status) -> Self {
        match status {
            Status::True => Self::Ready,
            Status::False => Self::NotReady,
            Status::Unknown => Self::Unknown,
        }
    }

    /// The label of metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "notready",
            Self::Unreachable => "offline",
            Self::Malformed => "config",
            Self::Unknown => "unknown",
            Self::HubPartition => "partition",
            Self::HeartbeatStopped => "heartbeat-stopped",
        }
    }
}

impl From<Verdict> for Health {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Ok => Self::Ready,
            Verdict::Unhealthy => Self::NotReady,
            Verdict::Unreachable => Self::Unreachable,
            Verdict::Config => Self::Malformed,
        }
    }
}

/// The status of a condition and its last transition, without reason and message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Status of the condition.
    pub status: Status,
    /// `lastTransitionTime`: when the status changed, which is not when the reason did
    pub since: Timestamp,
}

impl Condition {
    fn turn(&mut self, status: Status, at: Timestamp) {
        if self.status != status {
            *self = Self { status, since: at };
        }
    }
}

/// Published state of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Verdict that is published.
    pub health: Health,
    /// The condition `Ready`, or what the flavour calls it.
    pub ready: Condition,
    /// The condition `Offline`.
    pub offline: Condition,
    /// `lastProbeTime`: the start of the last completed probe, or when its Lease last decided. `None` when there was none.
    pub probed: Option<Timestamp>,
    /// The finding behind the health; `None` when it was read from the object or is `Unknown`.
    pub finding: Option<Finding>,
    /// How the addresses did in that probe.
    pub endpoints: Endpoints,
    /// More for people, as the probe had it.
    pub detail: Option<Box<str>>,
}

/// How a publication differs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// In times or words at most.
    Nothing,
    /// In the reason or the status of `Offline`, and not in the status of `Ready`.
    Reason,
    /// In the status of `Ready`.
    Ready {
        /// `None` for the first publication of all.
        from: Option<Status>,
        /// Never the same as `from`.
        to: Status,
    },
}

impl Published {
    /// Read from an object: `since` are the transition times that it gives.
    pub fn seed(
        health: Health,
        ready_since: Timestamp,
        offline_since: Timestamp,
        probed: Option<Timestamp>,
    ) -> Self {
        Self {
            health,
            ready: Condition { status: health.ready(), since: ready_since },
            offline: Condition { status: health.offline(), since: offline_since },
            probed,
            finding: None,
            endpoints: Endpoints::default(),
            detail: None,
        }
    }

    /// Publishes the verdict of a probe in the place of what was there.
    pub(crate) fn publish(slot: &mut Option<Self>, report: &Report) -> Change {
        let change = Self::turn(slot, report.finding.verdict().into(), report.started.wall);
        if let Some(published) = slot {
            published.probed = Some(report.started.wall);
            published.finding = Some(report.finding);
            published.endpoints = report.endpoints;
            published.detail.clone_from(&report.detail);
        }
        change
    }

    /// Publishes `health`, which no probe has found. The time of the last probe stays.
    pub(crate) fn withdraw(slot: &mut Option<Self>, health: Health, now: Moment) -> Change {
        let change = Self::turn(slot, health, now.wall);
        if let Some(published) = slot {
            published.finding = None;
            published.endpoints = Endpoints::default();
            published.detail = None;
        }
        change
    }

    /// A hash of why it is not well. What is wrong in an object has one code and several causes;
    /// what a member says may differ with each probe, and its code is all that counts.
    pub(crate) fn cause(&self) -> Option<u64> {
        let finding = self.finding?;
        let code = finding.code()?;
        let detail = self.detail.as_deref().filter(|_| finding.verdict() == Verdict::Config);
        Some(hash(&format!("{code} {}", detail.unwrap_or_default())))
    }

    fn turn(slot: &mut Option<Self>, health: Health, at: Timestamp) -> Change {
        let to = health.ready();
        let Some(published) = slot else {
            *slot = Some(Self::seed(health, at, at, None));
            return Change::Ready { from: None, to };
        };
        let (from, before) = (published.ready.status, published.health);
        published.health = health;
        published.ready.turn(to, at);
        published.offline.turn(health.offline(), at);
        match (from == to, before == health) {
            (false, _) => Change::Ready { from: Some(from), to },
            (true, false) => Change::Reason,
            (true, true) => Change::Nothing,
        }
    }
}

/// Between two causes that are told while the trouble goes on.
const AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// The cause that was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Causes {
    told: Option<u64>,
    /// When one took the place of another.
    changed_at: Option<Instant>,
}

impl Causes {
    /// A new state was published with this cause, and its event names the cause.
    pub(crate) fn begin(&mut self, cause: Option<u64>) {
        self.told = cause;
    }

    /// The published state was found again: whether it has another cause that gets an event now.
    pub(crate) fn note(&mut self, cause: Option<u64>, now: Instant) -> bool {
        if cause == self.told {
            return false;
        }
        // What the object of a cluster that was taken over tells is not known.
        if self.told.is_none() || cause.is_none() {
            self.told = cause;
            return false;
        }
        let recent = |at| now.saturating_duration_since(at) < AT_MOST_EVERY;
        if self.changed_at.is_some_and(recent) {
            return false;
        }
        *self = Self { told: cause, changed_at: Some(now) };
        true
    }
}

#[cfg(test)]
mod tests;
