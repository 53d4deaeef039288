//! What workers send: a block is reserved, sent, and bound or given up.

use std::time::Duration;

use cidr::{Exhausted, IpNet, Pool};
use tokio::time::Instant;

use super::open::Phase;
use super::{Allocator, Assignment, Effects, Owner, Uid};

impl Allocator {
    /// What to send for a Node, reserving a block of each pool when it has none yet.
    pub fn assign(&mut self, uid: &Uid) -> (Assignment, Effects) {
        let mut effects = Effects::default();
        let Some(open) = self.open.get(uid) else { return (Assignment::Settled, effects) };
        let unresolved = open.unresolved;
        if open.deleting && !unresolved {
            return (Assignment::Settled, effects);
        }
        if open.phase == Phase::Reserved {
            if unresolved || !self.contested(uid) {
                return (self.send(uid, unresolved), effects);
            }
            self.give_up(uid, &mut effects);
        }
        match self.reserve(uid, &mut effects) {
            Ok(()) => (self.send(uid, unresolved), effects),
            Err(exhausted) => {
                self.queue_up(uid);
                (Assignment::Starved(exhausted), effects)
            }
        }
    }

    /// The last check before the PATCH of `cidrs` leaves; afterwards its outcome counts as
    /// unknown until an answer says otherwise. `false`: do not send, ask [`Self::assign`] again.
    pub fn begin_send(&mut self, uid: &Uid, cidrs: &[IpNet]) -> bool {
        if self.contested(uid) || self.ledger.claim(&Owner::Node(uid.clone())) != Some(cidrs) {
            return false;
        }
        match self.open.get_mut(uid) {
            Some(open) if open.phase == Phase::Reserved && !open.deleting && !self.in_list => {
                open.unresolved = true;
                true
            }
            _ => false,
        }
    }

    /// The answer says that this PATCH wrote nothing. `before` is what
    /// [`Assignment::Send`] said: an older PATCH of unknown outcome stays unknown.
    pub fn not_written(&mut self, uid: &Uid, before: bool) {
        if let Some(open) = self.open.get_mut(uid) {
            open.unresolved = before;
        }
    }

    /// A consistent read shows the Node still without CIDRs although a PATCH may be under way,
    /// and other owners meanwhile overlap the claim: sending it again would break R1, so the
    /// block is given up and another one taken.
    pub fn still_empty(&mut self, uid: &Uid) -> Effects {
        let mut effects = Effects::default();
        if self.contested(uid) {
            self.give_up(uid, &mut effects);
            effects.wake.extend(self.open.get(uid).map(|open| open.name.clone()));
        }
        effects
    }

    /// The PATCH was answered 200: bound, and the time since the Node was first seen without
    /// CIDRs. `None` when the Node is gone or was settled by the watch before the answer came.
    pub fn bound(&mut self, uid: &Uid, now: Instant) -> Option<Duration> {
        let open = self.close(uid)?;
        self.names.insert(uid.clone(), open.name);
        Some(now.saturating_duration_since(open.since))
    }

    fn send(&self, uid: &Uid, unresolved: bool) -> Assignment {
        let cidrs = self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default().to_vec();
        Assignment::Send { cidrs, unresolved }
    }

    fn reserve(&mut self, uid: &Uid, effects: &mut Effects) -> Result<(), Exhausted> {
        let allocated = self.ledger.allocate(&Owner::Node(uid.clone()))?;
        self.count(&allocated.change);
        let pools = self.ledger.pools().iter().map(Pool::cidr);
        effects.skipped.extend(pools.zip(allocated.skipped));
        let mut name = None;
        if let Some(open) = self.open.get_mut(uid) {
            if let Phase::Starved { ticket } = open.phase {
                self.line.remove(&ticket);
            }
            open.phase = Phase::Reserved;
            name = Some(open.name.clone());
        }
        if let Some(name) = name {
            self.warn_of_pressure(&name, uid, effects);
        }
        Ok(())
    }

    /// Gives a reserved block back; the Node is pending again.
    fn give_up(&mut self, uid: &Uid, effects: &mut Effects) {
        self.forget_findings(uid);
        let change = self.ledger.release(&Owner::Node(uid.clone()));
        self.count(&change);
        if let Some(open) = self.open.get_mut(uid) {
            open.phase = Phase::Pending;
        }
        self.serve_line(effects);
    }

    fn queue_up(&mut self, uid: &Uid) {
        if let Some(open) = self.open.get_mut(uid)
            && !matches!(open.phase, Phase::Starved { .. })
        {
            open.phase = Phase::Starved { ticket: self.next_ticket };
            self.line.insert(self.next_ticket, uid.clone());
            self.next_ticket += 1;
        }
    }

    /// Hands free blocks to those who wait, first come first served.
    pub(super) fn serve_line(&mut self, effects: &mut Effects) {
        while let Some((_, uid)) = self.line.first_key_value() {
            let uid = uid.clone();
            if self.reserve(&uid, effects).is_err() {
                return;
            }
            effects.wake.extend(self.open.get(&uid).map(|open| open.name.clone()));
        }
    }

    /// Whether another owner's claim overlaps a block of this Node.
    fn contested(&self, uid: &Uid) -> bool {
        let me = Owner::Node(uid.clone());
        let claim = self.ledger.claim(&me).unwrap_or_default();
        claim.iter().any(|cidr| self.ledger.overlapping(cidr).iter().any(|(owner, _)| *owner != me))
    }
}
