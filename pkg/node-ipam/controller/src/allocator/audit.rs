//! The safety net under the event-driven bookkeeping (`rule:claims-are-audited`).

use std::collections::{BTreeSet, HashSet};

use cidr::IpNet;
use tokio::time::Instant;

use super::{Allocator, Effects, Owner, Uid};
use crate::reconciler::CachedNode;

impl Allocator {
    /// Compares all state with a consistent picture of the live Nodes (the informer's store,
    /// held still) and mends what differs. Finding anything is a defect; it is mended anyway.
    pub(crate) fn audit<'a, N: CachedNode>(
        &mut self,
        live: impl Iterator<Item = &'a N>,
        now: Instant,
    ) -> (usize, Effects) {
        let mut effects = Effects::default();
        let mut mended = 0;
        let mut uids = HashSet::new();
        for node in live {
            let uid = &node.as_ref().uid;
            uids.insert(uid.clone());
            let before = self.kept_of(uid);
            effects.merge(self.observe(node, now));
            mended += usize::from(self.kept_of(uid) != before);
        }
        // A key that was lost would leave its Node waiting for ever; an idle one costs nothing.
        effects.wake.extend(self.unassigned.values().map(|node| node.name.clone()));
        let known = self.assigned.keys().chain(self.unassigned.keys());
        let dead: BTreeSet<Uid> = known.filter(|uid| !uids.contains(*uid)).cloned().collect();
        for uid in dead {
            mended += 1;
            effects.merge(self.gone(&uid, now));
        }
        (mended, effects)
    }

    /// Whether a Node is known, and what it holds.
    fn kept_of(&self, uid: &Uid) -> (bool, Option<Box<[IpNet]>>) {
        let known = self.assigned.contains_key(uid) || self.unassigned.contains_key(uid);
        (known, self.ledger.claim(&Owner::Node(uid.clone())).map(Box::from))
    }
}
