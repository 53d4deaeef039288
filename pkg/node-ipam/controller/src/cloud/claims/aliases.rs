//! Alias ranges of VMs that are not what their Nodes have (`rule:strange-alias-is-no-claim`).

use std::sync::Arc;

use cidr::IpNet;

use super::{Claims, Owner, Phase, Uid};

impl Claims {
    /// Whether the VM of a Node has to be read before the first block is given out: it may have an
    /// alias that no Node shows (`rule:aliases-are-known-first`). Names of Nodes that waited for
    /// that.
    pub(in crate::cloud) fn expect_read(&mut self, uid: &Uid, is_expected: bool) -> Vec<Arc<str>> {
        if is_expected {
            if self.started.is_none() {
                self.unread.insert(Arc::clone(uid));
            }
            return Vec::new();
        }
        if !self.unread.remove(uid) || !self.unread.is_empty() {
            return Vec::new();
        }
        let waited = self.nodes.values().filter(|known| known.phase == Phase::Empty);
        waited.map(|known| Arc::clone(&known.name)).collect()
    }

    /// Keeps the alias ranges of the VM of a Node that are not what the Node has from all Nodes: the
    /// cloud routes them to that VM, and they are no claim of the Node
    /// (`rule:strange-alias-is-no-claim`). Names of Nodes that may try again.
    pub(in crate::cloud) fn keep_aliases(&mut self, uid: &Uid, aliases: &[IpNet]) -> Vec<Arc<str>> {
        let (own, owner) = (self.of(uid), Owner::Aliases(Arc::clone(uid)));
        let is_strange = |range: &IpNet| !own.contains(range) && self.is_in_pool(range);
        let strange: Vec<_> = aliases.iter().map(IpNet::trunc).filter(is_strange).collect();
        let before = self.ledger.claim(&owner).unwrap_or_default();
        if !self.is_live(uid) || before == strange {
            return Vec::new();
        }
        let frees = !before.is_empty();
        let kept = self.ledger.occupy(&owner, &strange);
        self.counts.change(&kept.change, self.ledger.pools());
        if frees { self.wake() } else { Vec::new() }
    }

    fn is_in_pool(&self, range: &IpNet) -> bool {
        self.ledger.pools().iter().any(|pool| pool.indices(range).is_some())
    }

    /// Whether a range is one whole block of the pool.
    pub(in crate::cloud) fn is_block(&self, range: &IpNet) -> bool {
        let mut pools = self.ledger.pools().iter();
        pools.any(|pool| pool.mask() == range.prefix_len() && pool.cidr().contains(range))
    }
}
