//! The safety net under the event-driven bookkeeping (`node-ipam.md` 1.2).

use std::collections::{BTreeSet, HashSet};

use model::Node;
use tokio::time::Instant;

use super::{Allocator, Effects, Uid};

impl Allocator {
    /// Compares all state with a consistent picture of the live Nodes (the informer's store,
    /// held still) and mends what differs. Finding anything is a defect; it is mended anyway.
    pub fn audit<'a>(
        &mut self,
        live: impl Iterator<Item = &'a Node>,
        now: Instant,
    ) -> (usize, Effects) {
        let mut effects = Effects::default();
        let mut mended = 0;
        let mut uids = HashSet::new();
        for node in live {
            uids.insert(node.uid.clone());
            let known = self.open.contains_key(&node.uid) || self.names.contains_key(&node.uid);
            let of_no_concern = node.pod_cidrs.is_empty() && node.deleting;
            if !(known || of_no_concern) {
                mended += 1;
                effects.merge(self.observe(node, now));
            }
        }
        let known = self.names.keys().chain(self.open.keys());
        let dead: BTreeSet<Uid> = known.filter(|uid| !uids.contains(*uid)).cloned().collect();
        for uid in dead {
            mended += 1;
            effects.merge(self.gone(&uid));
        }
        (mended, effects)
    }
}
