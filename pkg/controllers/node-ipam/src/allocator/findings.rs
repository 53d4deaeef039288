//! What is wrong with the CIDRs that live Nodes show, and what was told of it
//! (`rule:bad-node-stops-nobody`).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::notice::{CONFLICT, Notice};
use super::owner::Uid;
use super::told::Told;

/// Findings by Node; a Node without any takes no room.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// How many CIDRs of a Node lie outside all pools or cannot be parsed.
    external: HashMap<Uid, usize>,
    /// How many CIDRs of a Node overlap a service range.
    in_services: HashMap<Uid, usize>,
    /// For each Node those that it overlaps; every pair stands here twice.
    conflicts: HashMap<Uid, BTreeSet<Uid>>,
    told: HashMap<Uid, Told>,
}

impl Findings {
    pub(super) fn set_external(&mut self, uid: &Uid, cidrs: usize) {
        self.external.insert(uid.clone(), cidrs);
    }

    pub(super) fn add_in_services(&mut self, uid: &Uid) {
        *self.in_services.entry(uid.clone()).or_default() += 1;
    }

    pub(super) fn add_conflict(&mut self, one: &Uid, other: &Uid) {
        self.conflicts.entry(one.clone()).or_default().insert(other.clone());
        self.conflicts.entry(other.clone()).or_default().insert(one.clone());
    }

    pub(super) fn notice_due(&mut self, notice: &Notice, every: Duration, now: Instant) -> bool {
        self.told.entry(notice.uid.clone()).or_default().due(notice.reason, every, now)
    }

    /// The Node's CIDRs are about to change: what was found about the old ones has ended.
    pub(super) fn clear(&mut self, uid: &str) {
        self.external.remove(uid);
        self.in_services.remove(uid);
        for other in self.conflicts.remove(uid).unwrap_or_default() {
            let left = self.conflicts.get_mut(&other).is_some_and(|with| {
                with.remove(uid);
                !with.is_empty()
            });
            if !left {
                self.conflicts.remove(&other);
                self.forget_told(&other, CONFLICT);
            }
        }
        self.forget_told(uid, CONFLICT);
    }

    /// The Node is gone.
    pub(super) fn remove(&mut self, uid: &str) {
        self.clear(uid);
        self.told.remove(uid);
    }

    /// Pairs of Nodes that overlap.
    pub(super) fn conflicts(&self) -> usize {
        self.conflicts.values().map(BTreeSet::len).sum::<usize>() / 2
    }

    /// CIDRs outside all pools, or not parsable.
    pub(super) fn external(&self) -> usize {
        self.external.values().sum()
    }

    /// CIDRs that overlap a service range.
    pub(super) fn in_services(&self) -> usize {
        self.in_services.values().sum()
    }

    fn forget_told(&mut self, uid: &str, reason: &'static str) {
        if let Some(told) = self.told.get_mut(uid) {
            told.forget(reason);
        }
    }
}
