//! How the allocator queues the Nodes that wait for a block, and which of them gets the next one
//! (`rule:first-starved-first-served`).

use tokio::time::Instant;

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
