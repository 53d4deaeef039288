//! Blocks of Nodes that are gone, which nobody gets for a while (`rule:freed-blocks-rest`).

use std::time::Duration;

use tokio::time::Instant;

use super::rests::Rests;
use super::{Allocator, Effects, Owner, Uid};

impl Allocator {
    /// The same, in which the blocks of a Node that is gone are given to nobody for so long.
    pub(crate) fn resting_for(self, delay: Duration) -> Self {
        Self { rests: Rests::of(delay), ..self }
    }

    /// A Node that may have used its blocks is gone. Its claim goes over to the rest, and ends.
    pub(super) fn let_rest(&mut self, uid: &Uid, now: Instant) {
        let claim = self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default().to_vec();
        if self.rests.are_wanted() && !claim.is_empty() {
            self.set_aside(&Owner::Resting(uid.clone()), &claim);
            self.rests.begin(uid.clone(), now);
        }
    }

    /// When [`Self::end_rests`] is to be called next; `None` for never.
    pub(crate) fn next_rested(&self, now: Instant) -> Option<Instant> {
        self.rests.next(now)
    }

    /// Frees the blocks that have rested for long enough, the oldest first.
    pub(crate) fn end_rests(&mut self, now: Instant) -> Effects {
        let mut effects = Effects::default();
        while let Some(uid) = self.rests.end(now) {
            self.release(&Owner::Resting(uid));
            self.after_release(&mut effects);
        }
        effects
    }
}
