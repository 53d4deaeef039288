//! A live Node that has no pod CIDR yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// Where the Node stands (`node-ipam.md` 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// To be given blocks.
    Pending,
    /// Waits for a free block; lower tickets are served first.
    Starved {
        /// Place in line.
        ticket: u64,
    },
    /// Holds blocks that the Node does not show yet.
    Reserved,
}

#[derive(Debug)]
pub(super) struct Open {
    pub(super) name: Arc<str>,
    pub(super) phase: Phase,
    pub(super) deleting: bool,
    /// A PATCH was sent whose outcome is not known; outlives the block that it carried.
    pub(super) unresolved: bool,
    /// When the Node was first seen without CIDRs.
    pub(super) since: Instant,
    told: Vec<(&'static str, Instant)>,
}

impl Open {
    pub(super) fn new(name: Arc<str>, since: Instant) -> Self {
        Self {
            name,
            phase: Phase::Pending,
            deleting: false,
            unresolved: false,
            since,
            told: Vec::new(),
        }
    }

    /// True at most once per `every` for each reason.
    pub(super) fn due(&mut self, reason: &'static str, every: Duration, now: Instant) -> bool {
        match self.told.iter_mut().find(|(told, _)| *told == reason) {
            Some((_, at)) if now.saturating_duration_since(*at) < every => false,
            Some((_, at)) => {
                *at = now;
                true
            }
            None => {
                self.told.push((reason, now));
                true
            }
        }
    }
}
