//! A live Node that has no pod CIDR yet.

use std::sync::Arc;
use std::time::Duration;

use kube_api::NodeMarks;
use tokio::time::Instant;

use super::pool_source::Candidates;
use crate::patch::Outcome;

/// Where the Node stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// To be given blocks.
    Pending,
    /// Waits for a free block.
    Starved(Box<QueuePosition>),
    /// Holds blocks that the Node does not show yet.
    Reserved,
}

/// Where a Node waits for a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueuePosition {
    /// The queue that it stands in.
    pub(super) queue: Candidates,
    /// In a queue, lower tickets are served first.
    pub(super) ticket: u64,
}

/// At the start of a process all Nodes of a new cluster are in this state, so it is kept small.
#[derive(Debug)]
pub(super) struct Unassigned {
    pub(super) name: Arc<str>,
    /// The labels and taints that select it, where that matters.
    pub(super) marks: Option<Arc<NodeMarks>>,
    pub(super) phase: Phase,
    /// When the Node was first seen without CIDRs.
    pub(super) since: Instant,
    /// Few Nodes have any of it at a time.
    history: Option<Box<History>>,
    pub(super) deleting: bool,
    /// Nothing but our own work has delayed its first PATCH.
    pub(super) undelayed: bool,
}

/// Events and PATCHes since then.
#[derive(Debug, Default)]
struct History {
    outcome: Outcome,
    event_times: EventTimes,
}

impl Unassigned {
    pub(super) fn new(name: Arc<str>, marks: Option<Arc<NodeMarks>>, since: Instant) -> Self {
        Self {
            name,
            marks,
            phase: Phase::Pending,
            since,
            history: None,
            deleting: false,
            undelayed: true,
        }
    }

    /// The outcome of its PATCHes.
    pub(super) fn outcome(&self) -> Outcome {
        self.history.as_ref().map(|history| history.outcome).unwrap_or_default()
    }

    /// The outcome of its PATCHes, for changes.
    pub(super) fn outcome_mut(&mut self) -> &mut Outcome {
        &mut self.history.get_or_insert_default().outcome
    }

    /// When its events were last recorded.
    pub(super) fn event_times(&mut self) -> &mut EventTimes {
        &mut self.history.get_or_insert_default().event_times
    }
}

/// When an event of each reason was last recorded. A Node has a handful of reasons at most.
#[derive(Debug, Default)]
pub(super) struct EventTimes(Vec<(&'static str, Instant)>);

impl EventTimes {
    /// True at most once per `every` for each reason, the first time at once.
    pub(super) fn due(&mut self, reason: &'static str, every: Duration, now: Instant) -> bool {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, at)) if now.saturating_duration_since(*at) < every => false,
            Some((_, at)) => {
                *at = now;
                true
            }
            None => {
                self.0.push((reason, now));
                true
            }
        }
    }

    /// The state has ended: the next event of this reason is due at once.
    pub(super) fn forget(&mut self, reason: &'static str) {
        self.0.retain(|(known, _)| *known != reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_waits_takes_no_more_than_an_allocation_of_80_bytes() {
        assert!(size_of::<Unassigned>() <= 72, "{}", size_of::<Unassigned>());
    }
}
