//! Nodes for which there was no block, and who gets the next one
//! (`rule:first-starved-first-served`).

use super::{Allocator, Effects, Phase, Uid};

impl Allocator {
    /// Puts a Node at the end of the line, unless it stands in it.
    pub(super) fn starve(&mut self, uid: &Uid) {
        if let Some(node) = self.unassigned.get_mut(uid)
            && !matches!(node.phase, Phase::Starved { .. })
        {
            node.phase = Phase::Starved { ticket: self.next_ticket };
            node.undelayed = false;
            self.starved.insert(self.next_ticket, uid.clone());
            self.next_ticket += 1;
        }
    }

    /// Hands free blocks to those who wait, first come first served.
    pub(super) fn serve_starved(&mut self, effects: &mut Effects) {
        while let Some((_, uid)) = self.starved.first_key_value() {
            let uid = uid.clone();
            if self.reserve(&uid, effects).is_err() {
                return;
            }
            effects.wake.extend(self.unassigned.get(&uid).map(|node| node.name.clone()));
        }
    }
}
