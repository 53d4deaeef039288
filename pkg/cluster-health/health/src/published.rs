//! [`Published`]: what the object of a cluster says, or will say once it is written.

use jiff::Timestamp;

use crate::{Endpoints, Finding, Moment, Report, Standing, Status, Verdict, hash};

/// A condition without its words.
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
    pub standing: Standing,
    /// The condition `Ready`, or what the flavour calls it.
    pub ready: Condition,
    /// The condition `Offline`.
    pub offline: Condition,
    /// `lastProbeTime`: the start of the last completed probe. `None` when there was none.
    pub probed: Option<Timestamp>,
    /// The finding behind the standing; `None` when it was read from the object or is `Unknown`.
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
        standing: Standing,
        ready_since: Timestamp,
        offline_since: Timestamp,
        probed: Option<Timestamp>,
    ) -> Self {
        Self {
            standing,
            ready: Condition { status: standing.ready(), since: ready_since },
            offline: Condition { status: standing.offline(), since: offline_since },
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

    /// Publishes `Unknown`. The time of the last probe stays.
    pub(crate) fn expire(slot: &mut Option<Self>, now: Moment) -> Change {
        let change = Self::turn(slot, Standing::Unknown, now.wall);
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

    fn turn(slot: &mut Option<Self>, standing: Standing, at: Timestamp) -> Change {
        let to = standing.ready();
        let Some(published) = slot else {
            *slot = Some(Self::seed(standing, at, at, None));
            return Change::Ready { from: None, to };
        };
        let (from, before) = (published.ready.status, published.standing);
        published.standing = standing;
        published.ready.turn(to, at);
        published.offline.turn(standing.offline(), at);
        match (from == to, before == standing) {
            (false, _) => Change::Ready { from: Some(from), to },
            (true, false) => Change::Reason,
            (true, true) => Change::Nothing,
        }
    }
}
