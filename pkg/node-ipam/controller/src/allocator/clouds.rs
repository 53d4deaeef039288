//! Claims where a cloud knows of pod CIDRs too: it names those of a Node, or routes a block of the pool
//! before the Node has it.

use std::time::Duration;

use cidr::{IpNet, Pool};
use kube_api::Node;
use tokio::time::Instant;

use super::pool_source::{CloudSource, PoolSource};
use super::unassigned_nodes::Route;
use super::{Allocator, Assignment, Effects, Owner, Phase, Shortage, Uid};

/// The first block is given out after this time, even if the VM of a Node cannot be read.
const FIRST_READS: Duration = Duration::from_secs(60);
/// A block that the cloud refused to route stays unused for this time.
const REFUSED: Duration = Duration::from_secs(60);

impl Allocator {
    /// An allocator whose CIDRs the cloud names or routes, and gives none of `reserved`.
    pub(crate) fn of_cloud(source: CloudSource, pool: Option<Pool>, reserved: &[IpNet]) -> Self {
        let source = PoolSource::cloud(source);
        let mut allocator =
            Self { source, ..Self::new(pool.into_iter().collect(), &[]) }.without(reserved);
        if allocator.source.is_routed() {
            allocator.ledger.expect_set_aside(REFUSED);
        }
        // No event reports the warning lines; metrics show them from the start.
        drop(allocator.ledger.crossed());
        allocator
    }

    /// Like [`Self::assign`], for the CIDRs that the cloud names for a Node. While an earlier PATCH of
    /// others may be applied, it is too early.
    pub(crate) fn assign_exact(&mut self, uid: &Uid, cidrs: &[IpNet]) -> (Assignment, Effects) {
        self.start();
        let mut effects = Effects::default();
        let Some(node) = self.unassigned.get_mut(uid) else {
            return (Assignment::Settled, effects);
        };
        if node.deleting || !node.may_get() {
            return (Assignment::Settled, effects);
        }
        let (unresolved, since, name) = (node.outcome().is_open(), node.since, node.name.clone());
        if unresolved {
            // One worker has the key at a time: the answer to an earlier PATCH will not come any more.
            node.outcome_mut().lost(None);
        }
        let before = self.claim(uid);
        let (is_same, had_claim) = (before == cidrs, !before.is_empty());
        if self.is_too_early() || (unresolved && !is_same) {
            return (Assignment::TooEarly, effects);
        }
        if self.holder(uid, cidrs).is_some() && had_claim && !unresolved {
            // A claim that has not left blocks no other Node.
            self.give_up(uid, &mut effects);
        }
        if let Some(shortage) = self.wait_if_in_use(uid, cidrs) {
            return (Assignment::Starved(shortage), effects);
        }
        if !is_same {
            self.clear_findings(uid);
            let taken = self.ledger.occupy(&Owner::Node(uid.clone()), cidrs);
            self.count_external(uid, &taken.external);
            if let Some(node) = self.unassigned.get_mut(uid) {
                node.phase = Phase::Reserved;
            }
            self.warn_of_pressure(&name, uid, &mut effects);
            if had_claim {
                self.after_release(&mut effects);
            }
        }
        (self.send(uid, unresolved, since), effects)
    }

    /// Whether it is not known yet who has what: a list is being delivered, or VMs of the start were
    /// not read, which may have aliases that no Node shows (`rule:strange-alias-is-no-claim`).
    pub(super) fn is_too_early(&self) -> bool {
        let is_reading = || {
            let reads_end = self.started.map(|started| started + FIRST_READS);
            !self.cloud.unread.is_empty() && reads_end.is_none_or(|end| Instant::now() < end)
        };
        self.source.is_cloud() && (self.in_list || is_reading())
    }

    /// Whether a claim of another owner overlaps that of a Node. What a cloud names or has routed only
    /// another Node can contest (`rule:block-has-one-holder`).
    pub(super) fn is_contested(&self, uid: &Uid) -> bool {
        let is_contested = self.ledger.is_contested(&Owner::Node(uid.clone()));
        is_contested && (!self.source.is_cloud() || self.holder(uid, self.claim(uid)).is_some())
    }

    /// One of these CIDRs that another Node has, and that Node.
    fn holder(&self, uid: &Uid, cidrs: &[IpNet]) -> Option<(IpNet, Uid)> {
        cidrs.iter().find_map(|cidr| {
            let mut owners = self.ledger.overlapping(cidr).into_iter().map(|(owner, _)| owner);
            owners.find_map(|owner| match owner {
                Owner::Node(other) if other != *uid => Some((*cidr, other)),
                _ => None,
            })
        })
    }

    /// Lets a Node wait until no other one has any of these CIDRs.
    pub(super) fn wait_if_in_use(&mut self, uid: &Uid, cidrs: &[IpNet]) -> Option<Shortage> {
        let Some((cidr, by)) = self.holder(uid, cidrs) else {
            self.cloud.waiting.remove(uid);
            return None;
        };
        self.cloud.waiting.insert(uid.clone());
        Some(Shortage::InUse { cidr, by: self.name_of(&by) })
    }

    /// Whether a Node waits for CIDRs that another one has.
    pub(super) fn is_waiting(&self, uid: &Uid) -> bool {
        self.cloud.waiting.contains(uid)
    }

    /// A claim has ended: all that wait for another Node may try again.
    pub(super) fn wake_waiting(&mut self, effects: &mut Effects) {
        for uid in std::mem::take(&mut self.cloud.waiting) {
            effects.wake.push(self.name_of(&uid));
        }
    }

    /// A PATCH of this process has written what the Node has.
    pub(super) fn note_ours(&mut self, uid: &Uid) {
        if self.source.is_cloud() {
            self.cloud.ours.insert(uid.clone());
        }
    }

    /// The Node has other CIDRs than this process has written.
    pub(super) fn forget_ours(&mut self, uid: &Uid) {
        self.cloud.ours.remove(uid);
        self.cloud.waiting.remove(uid);
    }

    /// A Node is gone, with the aliases of its VM.
    pub(super) fn forget_at_cloud(&mut self, uid: &Uid, effects: &mut Effects) {
        self.forget_ours(uid);
        self.ledger.release(&Owner::Aliases(uid.clone()));
        effects.merge(self.vm_was_read(uid));
    }

    /// Whether a Node shows what a PATCH of this process has written to it.
    pub(crate) fn shows_ours(&self, node: &Node) -> bool {
        let shown = node.pod_cidrs.iter().map(|text| cidr::parse(text).ok());
        let has_left = || self.unassigned.get(&node.uid).is_some_and(|node| node.has_left());
        !node.pod_cidrs.is_empty()
            && (self.cloud.ours.contains(&node.uid) || has_left())
            && shown.eq(self.claim(&node.uid).iter().copied().map(Some))
    }

    /// The pod CIDRs of a Node: what the cache shows, or what was written since.
    pub(crate) fn pod_cidrs(&self, node: &Node) -> Vec<String> {
        if node.pod_cidrs.is_empty() && self.assigned.contains_key(&node.uid) {
            return self.claim(&node.uid).iter().map(cidr::canonical).collect();
        }
        node.pod_cidrs.iter().map(str::to_owned).collect()
    }

    /// The block of a Node without CIDRs that the cloud was asked to route, and may have routed.
    pub(crate) fn routed_block(&self, uid: &Uid) -> Option<IpNet> {
        let node = self.unassigned.get(uid)?;
        self.claim(uid).first().copied().filter(|_| node.route() != Route::NotRequested)
    }

    /// The last check before the cloud is asked to route a range to the VM of a Node; from here on the
    /// cloud may have done so (`rule:reserved-block-is-kept`).
    pub(crate) fn begin_route(&mut self, uid: &Uid, range: &IpNet, now: Instant) -> bool {
        if self.in_list || self.is_contested(uid) || !self.claim(uid).contains(range) {
            return false;
        }
        let Some(node) = self.unassigned.get_mut(uid) else {
            return self.assigned.contains_key(uid);
        };
        let may = !node.deleting && node.may_get() && self.hold.left(now).is_none();
        if may && node.route() == Route::NotRequested {
            node.set_route(Route::Requested);
        }
        may
    }

    /// The cloud has refused to route the block of a Node.
    pub(crate) fn route_refused(&mut self, uid: &Uid) {
        if let Some(node) = self.unassigned.get_mut(uid) {
            node.set_route(Route::Refused);
        }
    }

    /// Whether the cloud has refused to route the block of a Node.
    pub(crate) fn is_route_refused(&self, uid: &Uid) -> bool {
        self.unassigned.get(uid).is_some_and(|node| node.route() == Route::Refused)
    }

    /// A read since the refusal shows the VM without the block of a Node, and no PATCH of it can be
    /// applied: the Node may get another one, and no Node this one for a while
    /// (`rule:refused-block-is-changed`).
    pub(crate) fn change_block(&mut self, uid: &Uid, now: Instant) -> Effects {
        let mut effects = Effects::default();
        for block in self.claim(uid).to_vec() {
            self.ledger.set_aside(Owner::Refused(block), &[block], now + REFUSED);
        }
        self.give_up(uid, &mut effects);
        effects
    }

    /// The VM of a Node has to be read before the first block is given out
    /// (`rule:strange-alias-is-no-claim`).
    pub(crate) fn expect_vm_read(&mut self, uid: &Uid) {
        if self.started.is_none() && self.source.is_routed() {
            self.cloud.unread.insert(uid.clone());
        }
    }

    /// The VM of a Node was read, or need not be. The last one wakes the Nodes that waited for it.
    pub(crate) fn vm_was_read(&mut self, uid: &Uid) -> Effects {
        let mut effects = Effects::default();
        if self.cloud.unread.remove(uid) && self.cloud.unread.is_empty() {
            let waited = self.unassigned.values().filter(|node| !node.has_left());
            effects.wake.extend(waited.map(|node| node.name.clone()));
        }
        effects
    }

    /// Keeps the alias ranges of the VM of a Node that are not what the Node has from all Nodes: the
    /// cloud routes them to that VM, and they are no claim of the Node
    /// (`rule:strange-alias-is-no-claim`).
    pub(crate) fn keep_aliases(&mut self, uid: &Uid, aliases: &[IpNet]) -> Effects {
        let mut effects = Effects::default();
        let (own, owner) = (self.claim(uid), Owner::Aliases(uid.clone()));
        let is_in_pool =
            |range: &IpNet| self.ledger.pools().iter().any(|pool| pool.indices(range).is_some());
        let is_strange = |range: &IpNet| !own.contains(range) && is_in_pool(range);
        let strange: Vec<_> = aliases.iter().map(IpNet::trunc).filter(is_strange).collect();
        let before = self.ledger.claim(&owner).unwrap_or_default();
        if !self.is_live(uid) || before == strange {
            return effects;
        }
        let frees = !before.is_empty();
        self.ledger.occupy(&owner, &strange);
        self.warn_of_pressure(&self.name_of(uid), uid, &mut effects);
        if frees {
            self.after_release(&mut effects);
        }
        effects
    }

    /// Another writer has given CIDRs to a Node whose block the cloud may have routed: no other Node
    /// gets it before a read of the VM shows it without (`rule:strange-alias-is-no-claim`).
    pub(super) fn keep_routed(&mut self, uid: &Uid) {
        let routed = self.claim(uid).to_vec();
        self.ledger.occupy(&Owner::Aliases(uid.clone()), &routed);
    }

    /// Whether a range is one whole block of a pool.
    pub(crate) fn is_block(&self, range: &IpNet) -> bool {
        let mut pools = self.ledger.pools().iter();
        pools.any(|pool| pool.mask() == range.prefix_len() && pool.cidr().contains(range))
    }
}
