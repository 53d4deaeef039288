//! [`Lines`]: the order in which Nodes wait for a block.

use std::collections::BTreeMap;

use super::catalogue::Candidates;
use super::owner::Uid;
use super::unassigned::Place;

/// The Nodes that wait: a line for each choice of ClusterCIDRs, and one ticket counter for all. The
/// RangeAllocator has one line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: BTreeMap<Candidates, BTreeMap<u64, Uid>>,
    next_ticket: u64,
}

impl Lines {
    pub(super) fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    pub(super) fn join(&mut self, place: &Place, uid: Uid) {
        let Place { line, ticket } = place;
        match self.lines.get_mut(line) {
            Some(waiting) => drop(waiting.insert(*ticket, uid)),
            None => drop(self.lines.insert(line.clone(), BTreeMap::from([(*ticket, uid)]))),
        }
    }

    pub(super) fn leave(&mut self, place: &Place) {
        if let Some(waiting) = self.lines.get_mut(&place.line) {
            waiting.remove(&place.ticket);
            if waiting.is_empty() {
                self.lines.remove(&place.line);
            }
        }
    }

    /// The first of this line.
    pub(super) fn first(&self, line: &Candidates) -> Option<(u64, Uid)> {
        let (ticket, uid) = self.lines.get(line)?.first_key_value()?;
        Some((*ticket, uid.clone()))
    }

    /// The first of every line, by ticket.
    pub(super) fn heads(&self) -> BTreeMap<u64, (Uid, Candidates)> {
        let head = |(line, waiting): (&Candidates, &BTreeMap<u64, Uid>)| {
            let (ticket, uid) = waiting.first_key_value()?;
            Some((*ticket, (uid.clone(), line.clone())))
        };
        self.lines.iter().filter_map(head).collect()
    }
}
