//! Live Nodes that have no pod CIDR yet, and [`WaitQueues`] of those that found no free block.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_api::NodeMarks;
use tokio::time::Instant;

use super::Uid;
use super::pool_source::Candidates;
use crate::patch::OpenPatches;

/// Where the Node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// To be given blocks.
    Pending,
    /// Waits for a free block.
    Starved(Box<QueuePosition>),
    /// Holds blocks that the Node does not show yet.
    Reserved,
}

/// Where a Node waits for a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueuePosition {
    /// The queue that it stands in.
    pub(super) queue: Candidates,
    /// In a queue, lower tickets are served first.
    pub(super) ticket: u64,
}

/// What the cloud was asked to do with the block that is claimed for a Node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Route {
    /// Nothing: another block may take its place.
    #[default]
    NotRequested,
    /// To route it to the Node's VM. It may have done so, whatever it answered.
    Requested,
    /// To route it, which it refused.
    Refused,
}

/// At the start of a process all Nodes of a new cluster are in this state, so it is kept small.
#[derive(Clone, Debug)]
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
    /// Whether `--node-selector` selects it.
    pub(super) is_selected: bool,
    /// Nothing but our own work has delayed its first PATCH.
    pub(super) undelayed: bool,
}

/// Events and PATCHes since then.
#[derive(Clone, Debug, Default)]
struct History {
    outcome: OpenPatches,
    event_times: EventTimes,
    route: Route,
    /// When a PATCH was first refused by 429.
    throttled_first: Option<Instant>,
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
            is_selected: true,
            undelayed: true,
        }
    }

    /// The outcome of its PATCHes.
    pub(super) fn outcome(&self) -> OpenPatches {
        self.history.as_ref().map(|history| history.outcome).unwrap_or_default()
    }

    /// The outcome of its PATCHes, for changes.
    pub(super) fn outcome_mut(&mut self) -> &mut OpenPatches {
        &mut self.history.get_or_insert_default().outcome
    }

    /// What became of its block at the cloud.
    pub(super) fn route(&self) -> Route {
        self.history.as_ref().map(|history| history.route).unwrap_or_default()
    }

    /// Notes what became of its block at the cloud.
    pub(super) fn set_route(&mut self, route: Route) {
        self.history.get_or_insert_default().route = route;
    }

    /// Whether its block may have left this process: in a PATCH, or to the cloud.
    pub(super) fn has_left(&self) -> bool {
        self.outcome().is_open() || self.route() != Route::NotRequested
    }

    /// Whether the Node may get its block. What the cloud may have routed already is finished
    /// (`rule:begun-alias-is-finished`).
    pub(super) fn may_get(&self) -> bool {
        self.is_selected || self.route() != Route::NotRequested
    }

    /// A PATCH was refused by 429 at `now`; when the first one was.
    pub(super) fn throttled_first(&mut self, now: Instant) -> Instant {
        *self.history.get_or_insert_default().throttled_first.get_or_insert(now)
    }

    /// When its events were last recorded.
    pub(super) fn event_times(&mut self) -> &mut EventTimes {
        &mut self.history.get_or_insert_default().event_times
    }
}

/// When an event of each reason was last recorded. A Node has a handful of reasons at most.
#[derive(Clone, Debug, Default)]
pub(super) struct EventTimes(Vec<(&'static str, Instant)>);

impl EventTimes {
    /// True at most once per `every` for each reason, the first time at once.
    pub(super) fn due(&mut self, reason: &'static str, every: Duration, now: Instant) -> bool {
        let is_recent = |at: Instant| now.saturating_duration_since(at) < every;
        if self.0.iter().any(|(known, at)| *known == reason && is_recent(*at)) {
            return false;
        }
        self.forget(reason);
        self.0.push((reason, now));
        true
    }

    /// The state has ended: the next event of this reason is due at once.
    pub(super) fn forget(&mut self, reason: &'static str) {
        self.0.retain(|(known, _)| *known != reason);
    }
}

/// The Nodes that wait: one queue for each choice of ClusterCIDRs, and one ticket counter for all. The
/// RangeAllocator has one.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitQueues {
    queues: BTreeMap<Candidates, BTreeMap<u64, Uid>>,
    next_ticket: u64,
}

impl WaitQueues {
    pub(super) fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    pub(super) fn join(&mut self, position: &QueuePosition, uid: Uid) {
        let QueuePosition { queue, ticket } = position;
        self.queues.entry(queue.clone()).or_default().insert(*ticket, uid);
    }

    pub(super) fn leave(&mut self, position: &QueuePosition) {
        if let Some(waiting) = self.queues.get_mut(&position.queue) {
            waiting.remove(&position.ticket);
            if waiting.is_empty() {
                self.queues.remove(&position.queue);
            }
        }
    }

    /// The first of this queue.
    pub(super) fn first(&self, queue: &Candidates) -> Option<(u64, Uid)> {
        let (ticket, uid) = self.queues.get(queue)?.first_key_value()?;
        Some((*ticket, uid.clone()))
    }

    /// The first of every queue, by ticket.
    pub(super) fn heads(&self) -> BTreeMap<u64, (Uid, Candidates)> {
        let head = |(queue, waiting): (&Candidates, &BTreeMap<u64, Uid>)| {
            let (ticket, uid) = waiting.first_key_value()?;
            Some((*ticket, (uid.clone(), queue.clone())))
        };
        self.queues.iter().filter_map(head).collect()
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
