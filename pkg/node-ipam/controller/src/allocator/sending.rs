//! The way of a block to its Node: reserved, sent, and bound or given up. Nodes that find no free
//! block wait in queues, and get the next ones (`rule:first-starved-first-served`).

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use tokio::time::Instant;

use super::findings::Skipped;
use super::unassigned_nodes::{QueuePosition, Route, Unassigned};
use super::{Allocator, Assignment, Effects, Owner, Phase, Shortage, Uid};

/// The next step after a consistent read that shows a Node still without CIDRs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterRead {
    /// Send the claim (again).
    Send,
    /// The server may apply an earlier PATCH until then, and nothing may be sent meanwhile: read
    /// once more afterwards.
    Wait(Instant),
    /// The claim was given up; the Node is woken for another one.
    Reassign,
    /// Nothing to send and nothing to wait for.
    Settled,
}

/// A PATCH that left, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// For the first PATCH of a Node that nothing but our own work delayed: the time since its
    /// event was received.
    pub(crate) own_delay: Option<Duration>,
}

impl Allocator {
    /// Decides what to send for a Node, reserving a block of each pool when it has none yet.
    pub(crate) fn assign(&mut self, uid: &Uid) -> (Assignment, Effects) {
        self.start();
        let mut effects = Effects::default();
        if self.is_too_early() {
            return (Assignment::TooEarly, effects);
        }
        let Some(node) = self.unassigned.get_mut(uid) else {
            return (Assignment::Settled, effects);
        };
        // One worker has the key at a time: the answer to an earlier PATCH will not come any more.
        let (unresolved, since) = (node.outcome().is_open(), node.since);
        if unresolved {
            node.outcome_mut().lost(None);
        }
        if node.deleting && !unresolved {
            return (Assignment::Settled, effects);
        }
        if !node.may_get() && !unresolved {
            return (Assignment::Settled, self.end_unselected(uid));
        }
        let is_routed = node.route() != Route::NotRequested;
        if node.phase == Phase::Reserved {
            if is_routed && !unresolved {
                let claim = self.claim(uid).to_vec();
                if let Some(shortage) = self.wait_if_in_use(uid, &claim) {
                    return (Assignment::Starved(shortage), effects);
                }
            }
            if unresolved || !self.must_move(uid) {
                return (self.send(uid, unresolved, since), effects);
            }
            self.give_up(uid, &mut effects);
        }
        match self.reserve(uid, &mut effects) {
            Ok(()) => (self.send(uid, unresolved, since), effects),
            Err(shortage) => {
                self.starve(uid);
                (Assignment::Starved(shortage), effects)
            }
        }
    }

    /// The last check before the PATCH of `cidrs` leaves, which the server can apply until
    /// `until` at the latest; from here on its outcome is open. `None`: do not send, ask
    /// [`Self::assign`] again.
    pub(crate) fn begin_send(
        &mut self,
        uid: &Uid,
        cidrs: &[IpNet],
        now: Instant,
        until: Instant,
    ) -> Option<Departure> {
        if self.in_list
            || self.is_contested(uid)
            || self.is_withdrawn(uid)
            || self.claim(uid) != cidrs
        {
            return None;
        }
        let node = self.unassigned.get_mut(uid)?;
        // What the cloud has carried out already is finished (`rule:begun-alias-is-finished`).
        let is_held = node.route() == Route::NotRequested && self.hold.left(now).is_some();
        if is_held || node.phase != Phase::Reserved || node.deleting || !node.may_get() {
            return None;
        }
        node.outcome_mut().sent(until);
        let first = mem::take(&mut node.undelayed);
        let own_delay = first.then(|| now.saturating_duration_since(node.since));
        Some(Departure { own_delay })
    }

    /// Notes that no answer says what became of the last PATCH, which the server can apply until `until`, or
    /// until what [`Self::begin_send`] was told.
    pub(crate) fn lost(&mut self, uid: &Uid, until: Option<Instant>) {
        if let Some(node) = self.unassigned.get_mut(uid) {
            node.outcome_mut().lost(until);
        }
    }

    /// The answer says that the last PATCH wrote nothing.
    pub(crate) fn refused(&mut self, uid: &Uid) {
        if let Some(node) = self.unassigned.get_mut(uid) {
            node.outcome_mut().refused();
        }
    }

    /// The last PATCH was refused by 429 at `now`; when the first one of this Node was.
    pub(crate) fn throttled_first(&mut self, uid: &Uid, now: Instant) -> Instant {
        self.unassigned.get_mut(uid).map_or(now, |node| node.throttled_first(now))
    }

    /// A consistent read, begun and answered at those moments, shows the Node without CIDRs. While
    /// the server may yet apply a PATCH, all of its blocks stay claimed, even when others hold some
    /// of them.
    pub(crate) fn read_empty(
        &mut self,
        uid: &Uid,
        begun: Instant,
        answered: Instant,
    ) -> (AfterRead, Effects) {
        let mut effects = Effects::default();
        let must_move = self.must_move(uid);
        let Some(node) = self.unassigned.get_mut(uid) else {
            return (AfterRead::Settled, effects);
        };
        node.outcome_mut().read_empty(begun, answered);
        let after = match node.outcome().until() {
            Some(until) if must_move || node.deleting || !node.may_get() => AfterRead::Wait(until),
            None if !node.may_get() => {
                effects = self.end_unselected(uid);
                AfterRead::Settled
            }
            None if node.deleting => AfterRead::Settled,
            None if must_move => {
                effects.wake.push(node.name.clone());
                self.give_up(uid, &mut effects);
                AfterRead::Reassign
            }
            _ => AfterRead::Send,
        };
        (after, effects)
    }

    /// The PATCH was answered 200: bound, and the time since the Node was first seen without
    /// CIDRs. `None` when the Node is gone or was settled by the watch before the answer came.
    pub(crate) fn bound(&mut self, uid: &Uid, now: Instant) -> Option<Duration> {
        let node = self.close(uid)?;
        self.assigned.insert(uid.clone(), node.name);
        self.note_ours(uid);
        Some(now.saturating_duration_since(node.since))
    }

    /// When the next read may settle the Node's outcome; `None` when nothing is open.
    pub(crate) fn open_until(&self, uid: &Uid) -> Option<Instant> {
        self.unassigned.get(uid)?.outcome().until()
    }

    /// Names and UIDs of the Nodes with a PATCH of unknown outcome.
    pub(crate) fn open_outcomes(&self) -> Vec<(Arc<str>, Uid)> {
        let open = self.unassigned.iter().filter(|(_, node)| node.outcome().is_open());
        let open = open.map(|(uid, node)| (node.name.clone(), uid.clone()));
        open.collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(super) fn send(&self, uid: &Uid, unresolved: bool, since: Instant) -> Assignment {
        Assignment::Send { cidrs: self.claim(uid).to_vec(), unresolved, since }
    }

    pub(super) fn reserve(&mut self, uid: &Uid, effects: &mut Effects) -> Result<(), Shortage> {
        let places = self.serving(uid)?;
        let allocated = self.ledger.allocate_from(&Owner::Node(uid.clone()), &places)?;
        for (place, blocks) in places.into_iter().zip(allocated.skipped) {
            let object = self.source.name_of_pool(place).cloned();
            let pool = self.ledger.pools()[place].cidr();
            effects.skipped.push(Skipped { pool, object, blocks });
        }
        let Some(node) = self.unassigned.get_mut(uid) else { return Ok(()) };
        if let Phase::Starved(position) = mem::replace(&mut node.phase, Phase::Reserved) {
            self.starved.leave(&position);
        }
        let name = node.name.clone();
        self.warn_of_pressure(&name, uid, effects);
        Ok(())
    }

    /// Gives a reserved block back; the Node is pending again.
    pub(super) fn give_up(&mut self, uid: &Uid, effects: &mut Effects) {
        self.clear_findings(uid);
        self.ledger.release(&Owner::Node(uid.clone()));
        if let Some(node) = self.unassigned.get_mut(uid) {
            node.phase = Phase::Pending;
            if node.route() != Route::NotRequested {
                node.set_route(Route::NotRequested);
            }
        }
        self.after_release(effects);
    }

    /// Frees what is reserved for a Node that is no longer selected, unless it may yet get it.
    pub(crate) fn end_unselected(&mut self, uid: &Uid) -> Effects {
        let mut effects = Effects::default();
        let is_over = |node: &Unassigned| !node.may_get() && !node.outcome().is_open();
        if !self.unassigned.get(uid).is_some_and(|node| is_over(node)) {
            return effects;
        }
        self.close(uid);
        self.clear_findings(uid);
        self.ledger.release(&Owner::Node(uid.clone()));
        self.cloud.waiting.remove(uid);
        effects.merge(self.vm_was_read(uid));
        self.after_release(&mut effects);
        effects
    }

    /// Whether others are to take the place of the blocks that are reserved for a Node: another owner's claim
    /// overlaps them, or their ClusterCIDR gives out nothing more. A block that the cloud may have
    /// routed stays.
    fn must_move(&self, uid: &Uid) -> bool {
        let is_routed =
            self.unassigned.get(uid).is_some_and(|it| it.route() != Route::NotRequested);
        !is_routed && (self.is_contested(uid) || self.is_withdrawn(uid))
    }
}

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
        if let Phase::Starved(position) = mem::replace(&mut node.phase, Phase::Pending) {
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
