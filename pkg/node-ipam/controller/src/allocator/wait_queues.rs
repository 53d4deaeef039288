//! [`WaitQueues`]: the Nodes that wait for a block, and which of them gets the next one
//! (`rule:first-starved-first-served`).

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::pool_source::Candidates;
use super::{Allocator, Effects, Phase, QueuePosition, Uid};

impl Allocator {
    /// Puts a Node at the end of its queue, unless it stands in one.
    pub(super) fn starve(&mut self, uid: &Uid) {
        let queue = self.choice(uid).candidates;
        if let Some(node) = self.unassigned.get_mut(uid)
            && !matches!(node.phase, Phase::Starved(_))
        {
            let position = QueuePosition { queue, ticket: self.starved.take_ticket() };
            self.starved.join(&position, uid.clone());
            node.phase = Phase::Starved(Box::new(position));
            node.undelayed = false;
        }
    }

    /// Puts a starved Node into the queue of what may serve it now; its ticket stays.
    pub(super) fn change_queue(&mut self, uid: &Uid) {
        let queue = self.choice(uid).candidates;
        let Some(node) = self.unassigned.get_mut(uid) else { return };
        if let Phase::Starved(position) = &mut node.phase
            && position.queue != queue
        {
            self.starved.leave(position);
            position.queue = queue;
            self.starved.join(position, uid.clone());
        }
    }

    /// A starved Node is pending again.
    fn leave_queue(&mut self, uid: &Uid) {
        let Some(node) = self.unassigned.get_mut(uid) else { return };
        if let Phase::Starved(position) = std::mem::replace(&mut node.phase, Phase::Pending) {
            self.starved.leave(&position);
        }
    }

    /// Hands free blocks to those who wait, first come first served. A Node that cannot be served holds
    /// up no Node of another queue.
    pub(super) fn serve_starved(&mut self, effects: &mut Effects) {
        let mut heads = self.starved.heads();
        while let Some((_, (uid, queue))) = heads.pop_first() {
            if self.labelled_by(&uid).is_some_and(|until| until > Instant::now()) {
                // What has come is not what its labels may select: its worker waits for those.
                self.leave_queue(&uid);
            } else if self.reserve(&uid, effects).is_err() {
                continue;
            }
            effects.wake.extend(self.unassigned.get(&uid).map(|node| node.name.clone()));
            if let Some((ticket, next)) = self.starved.first(&queue) {
                heads.insert(ticket, (next, queue));
            }
        }
    }
}

/// The Nodes that wait: one queue for each choice of ClusterCIDRs, and one ticket counter for all. The
/// RangeAllocator has one.
#[derive(Debug, Default)]
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
        match self.queues.get_mut(queue) {
            Some(waiting) => drop(waiting.insert(*ticket, uid)),
            None => drop(self.queues.insert(queue.clone(), BTreeMap::from([(*ticket, uid)]))),
        }
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
    fn first(&self, queue: &Candidates) -> Option<(u64, Uid)> {
        let (ticket, uid) = self.queues.get(queue)?.first_key_value()?;
        Some((*ticket, uid.clone()))
    }

    /// The first of every queue, by ticket.
    fn heads(&self) -> BTreeMap<u64, (Uid, Candidates)> {
        let head = |(queue, waiting): (&Candidates, &BTreeMap<u64, Uid>)| {
            let (ticket, uid) = waiting.first_key_value()?;
            Some((*ticket, (uid.clone(), queue.clone())))
        };
        self.queues.iter().filter_map(head).collect()
    }
}
