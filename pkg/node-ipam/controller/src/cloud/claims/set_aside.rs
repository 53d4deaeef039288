//! Blocks that no Node may get although no Node has them: those that the cloud refused to route
//! (`rule:refused-block-is-changed`), and alias ranges of VMs that differ from their Nodes' pod CIDRs
//! (`rule:strange-alias-is-no-claim`).

use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use tokio::time::Instant;

use super::{Claims, Owner, Phase, Uid};

/// A refused block stays unused for so long.
const REFUSED: Duration = Duration::from_secs(60);

impl Claims {
    /// The cloud has refused to route what is claimed for a Node.
    pub(in super::super) fn refuse(&mut self, uid: &Uid) {
        if let Some(known) = self.nodes.get_mut(uid) {
            known.is_refused = true;
        }
    }

    /// Whether the cloud has refused what is claimed for a Node.
    pub(in super::super) fn is_refused(&self, uid: &Uid) -> bool {
        self.nodes.get(uid).is_some_and(|known| known.is_refused)
    }

    /// A read since the refusal shows the VM without the block of a Node, and no PATCH of it can be
    /// carried out: the Node gets another one, and no Node this one for a while
    /// (`rule:refused-block-is-changed`).
    pub(in super::super) fn give_up(&mut self, uid: &Uid) {
        let Some(known) = self.nodes.get_mut(uid).filter(|known| known.is_refused) else { return };
        (known.is_refused, known.phase) = (false, Phase::Empty);
        for block in self.of(uid).to_vec() {
            self.ledger.set_aside(Owner::Refused(block), &[block], Instant::now() + REFUSED);
        }
        self.set(uid, &[]);
    }

    /// Whether the VM of a Node has to be read before the first block is given out: it may have an
    /// alias that no Node shows (`rule:strange-alias-is-no-claim`). Names of Nodes that waited for
    /// that.
    pub(in super::super) fn expect_read(&mut self, uid: &Uid, is_expected: bool) -> Vec<Arc<str>> {
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
    pub(in super::super) fn keep_aliases(&mut self, uid: &Uid, aliases: &[IpNet]) -> Vec<Arc<str>> {
        let (own, owner) = (self.of(uid), Owner::Aliases(Arc::clone(uid)));
        let is_strange = |range: &IpNet| !own.contains(range) && self.is_in_pool(range);
        let strange: Vec<_> = aliases.iter().map(IpNet::trunc).filter(is_strange).collect();
        let before = self.ledger.claim(&owner).unwrap_or_default();
        if !self.is_live(uid) || before == strange {
            return Vec::new();
        }
        let frees = !before.is_empty();
        self.occupy(&owner, &strange);
        if frees { self.wake() } else { Vec::new() }
    }

    fn is_in_pool(&self, range: &IpNet) -> bool {
        self.ledger.pools().iter().any(|pool| pool.indices(range).is_some())
    }

    /// Whether a range is one whole block of the pool.
    pub(in super::super) fn is_block(&self, range: &IpNet) -> bool {
        let mut pools = self.ledger.pools().iter();
        pools.any(|pool| pool.mask() == range.prefix_len() && pool.cidr().contains(range))
    }
}
