//! Nodes for which there was no block, and who gets the next one
//! (`rule:first-starved-first-served`).

use tokio::time::Instant;

use super::{Allocator, Effects, Phase, Place, Uid};

impl Allocator {
    /// Puts a Node at the end of its line, unless it stands in one.
    pub(super) fn starve(&mut self, uid: &Uid) {
        let line = self.choice(uid).candidates;
        if let Some(node) = self.unassigned.get_mut(uid)
            && !matches!(node.phase, Phase::Starved(_))
        {
            let place = Place { line, ticket: self.starved.take_ticket() };
            self.starved.join(&place, uid.clone());
            node.phase = Phase::Starved(Box::new(place));
            node.undelayed = false;
        }
    }

    /// Puts a starved Node into the line of what may serve it now; its ticket stays.
    pub(super) fn change_line(&mut self, uid: &Uid) {
        let line = self.choice(uid).candidates;
        let Some(node) = self.unassigned.get_mut(uid) else { return };
        if let Phase::Starved(place) = &mut node.phase
            && place.line != line
        {
            self.starved.leave(place);
            place.line = line;
            self.starved.join(place, uid.clone());
        }
    }

    /// A starved Node is pending again.
    fn leave_line(&mut self, uid: &Uid) {
        let Some(node) = self.unassigned.get_mut(uid) else { return };
        if let Phase::Starved(place) = std::mem::replace(&mut node.phase, Phase::Pending) {
            self.starved.leave(&place);
        }
    }

    /// Hands free blocks to those who wait, first come first served. Who cannot be served holds up
    /// nobody whose line differs.
    pub(super) fn serve_starved(&mut self, effects: &mut Effects) {
        let mut heads = self.starved.heads();
        while let Some((_, (uid, line))) = heads.pop_first() {
            if self.labelled_by(&uid).is_some_and(|until| until > Instant::now()) {
                // What has come is not what its labels may select: its worker waits for those.
                self.leave_line(&uid);
            } else if self.reserve(&uid, effects).is_err() {
                continue;
            }
            effects.wake.extend(self.unassigned.get(&uid).map(|node| node.name.clone()));
            if let Some((ticket, next)) = self.starved.first(&line) {
                heads.insert(ticket, (next, line));
            }
        }
    }
}
