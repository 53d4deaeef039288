//! Blocks that are given to no Node for a while: those that the cloud refused
//! (`rule:refused-block-is-changed`), and those of Nodes that are gone (`rule:freed-blocks-rest`).

use std::time::Duration;

use cidr::IpNet;
use tokio::time::Instant;

use super::{Claims, Owner, Phase, Uid};

/// A block that the cloud refused is given to no Node for so long.
const REFUSED: Duration = Duration::from_secs(60);

impl Claims {
    /// The cloud has refused to route what is claimed for a Node.
    pub(in crate::cloud) fn refuse(&mut self, uid: &Uid) {
        if let Some(known) = self.nodes.get_mut(uid) {
            known.is_refused = true;
        }
    }

    /// Whether the cloud has refused what is claimed for a Node.
    pub(in crate::cloud) fn is_refused(&self, uid: &Uid) -> bool {
        self.nodes.get(uid).is_some_and(|known| known.is_refused)
    }

    /// A read since the refusal shows the VM without the block of a Node, and no PATCH of it can be
    /// carried out: the Node gets another one, and nobody this one for a while
    /// (`rule:refused-block-is-changed`).
    pub(in crate::cloud) fn give_up(&mut self, uid: &Uid) {
        let Some(known) = self.nodes.get_mut(uid).filter(|known| known.is_refused) else { return };
        (known.is_refused, known.phase) = (false, Phase::Empty);
        for block in self.of(uid).to_vec() {
            self.set_aside(Owner::Refused(block), &[block], Instant::now() + REFUSED);
        }
        self.set(uid, &[]);
    }

    /// Gives these to no Node until then.
    pub(super) fn set_aside(&mut self, owner: Owner, ranges: &[IpNet], until: Instant) {
        let taken = self.ledger.occupy(&owner, ranges);
        self.counts.change(&taken.change, self.ledger.pools());
        self.aside.insert((until, owner));
    }

    /// Frees what was set aside for long enough.
    pub(super) fn end_rests(&mut self, now: Instant) {
        while self.aside.first().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, owner)) = self.aside.pop_first() {
                self.end(&owner);
            }
        }
    }

    /// Ends a claim that is of no Node.
    pub(super) fn end(&mut self, owner: &Owner) {
        let change = self.ledger.release(owner);
        self.counts.change(&change, self.ledger.pools());
    }
}
