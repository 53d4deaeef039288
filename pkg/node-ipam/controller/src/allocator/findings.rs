//! What is wrong with the CIDRs that live Nodes show, and what was told of it
//! (`rule:bad-node-stops-nobody`).

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::catalogue::Uid;
use super::notice::{CONFLICT, Notice};
use super::unassigned::Told;

/// Findings by Node; a Node without any takes no room.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// How many CIDRs of a Node lie outside all pools.
    external: HashMap<Uid, usize>,
    /// How many texts of a Node cannot be parsed.
    garbage: HashMap<Uid, usize>,
    /// How many CIDRs of a Node overlap a service range.
    in_services: HashMap<Uid, usize>,
    /// How many others each Node overlaps; every pair counts twice. Which ones they are the ledger
    /// knows: of thousands with one CIDR a list for each would be the square of them.
    conflicts: HashMap<Uid, usize>,
    told: HashMap<Uid, Told>,
}

impl Findings {
    pub(super) fn set_external(&mut self, uid: &Uid, cidrs: usize) {
        if cidrs == 0 {
            self.external.remove(uid);
        } else {
            self.external.insert(uid.clone(), cidrs);
        }
    }

    pub(super) fn set_garbage(&mut self, uid: &Uid, texts: usize) {
        self.garbage.insert(uid.clone(), texts);
    }

    pub(super) fn add_in_services(&mut self, uid: &Uid) {
        *self.in_services.entry(uid.clone()).or_default() += 1;
    }

    /// A pair that was not counted before. True when it is the first one of `other`.
    pub(super) fn add_conflict(&mut self, one: &Uid, other: &Uid) -> bool {
        *self.conflicts.entry(one.clone()).or_default() += 1;
        let of_other = self.conflicts.entry(other.clone()).or_default();
        *of_other += 1;
        *of_other == 1
    }

    /// Whether a pair of the Node is counted.
    pub(super) fn has_conflict(&self, uid: &str) -> bool {
        self.conflicts.contains_key(uid)
    }

    pub(super) fn notice_due(&mut self, notice: &Notice, every: Duration, now: Instant) -> bool {
        self.told.entry(notice.uid.clone()).or_default().due(notice.reason, every, now)
    }

    /// The Node's CIDRs are about to change: what was found about the old ones has ended, also for
    /// those that it overlaps.
    pub(super) fn clear<'a>(&mut self, uid: &str, overlapped: impl Iterator<Item = &'a Uid>) {
        self.external.remove(uid);
        self.garbage.remove(uid);
        self.in_services.remove(uid);
        for other in overlapped {
            let Some(count) = self.conflicts.get_mut(other) else { continue };
            *count -= 1;
            if *count == 0 {
                self.conflicts.remove(other);
                self.forget_told(other, CONFLICT);
            }
        }
        self.conflicts.remove(uid);
        self.forget_told(uid, CONFLICT);
    }

    /// The Node, of which everything was cleared, is gone.
    pub(super) fn remove(&mut self, uid: &str) {
        self.told.remove(uid);
    }

    /// Pairs of Nodes that overlap.
    pub(super) fn conflicts(&self) -> usize {
        self.conflicts.values().sum::<usize>() / 2
    }

    /// CIDRs outside all pools, or not parsable.
    pub(super) fn external(&self) -> usize {
        self.external.values().sum::<usize>() + self.garbage.values().sum::<usize>()
    }

    /// CIDRs that overlap a service range.
    pub(super) fn in_services(&self) -> usize {
        self.in_services.values().sum()
    }

    /// Nodes of which it is known what they were told.
    #[cfg(test)]
    pub(super) fn told_nodes(&self) -> usize {
        self.told.len()
    }

    fn forget_told(&mut self, uid: &str, reason: &'static str) {
        if let Some(told) = self.told.get_mut(uid) {
            told.forget(reason);
        }
    }
}
