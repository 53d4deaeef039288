//! A live Node that has no pod CIDR yet.

use std::sync::Arc;

use model::NodeMarks;
use tokio::time::Instant;

use super::catalogue::Candidates;
use super::outcome::Outcome;
use super::told::Told;

/// Where the Node stands.
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
pub(super) struct Unassigned {
    pub(super) name: Arc<str>,
    /// What it is selected by, where that matters.
    pub(super) marks: Option<Arc<NodeMarks>>,
    /// The line that it stands in when it starves.
    pub(super) line: Candidates,
    pub(super) phase: Phase,
    pub(super) deleting: bool,
    pub(super) outcome: Outcome,
    /// When the Node was first seen without CIDRs.
    pub(super) since: Instant,
    /// Nothing but our own work has delayed its first PATCH.
    pub(super) undelayed: bool,
    pub(super) told: Told,
}

impl Unassigned {
    pub(super) fn new(name: Arc<str>, marks: Option<Arc<NodeMarks>>, since: Instant) -> Self {
        Self {
            name,
            marks,
            line: Candidates::default(),
            phase: Phase::Pending,
            deleting: false,
            outcome: Outcome::default(),
            since,
            undelayed: true,
            told: Told::default(),
        }
    }
}
