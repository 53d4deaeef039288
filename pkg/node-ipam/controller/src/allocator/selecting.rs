//! Nodes that `--node-selector` does not select: they get nothing, and what they have stays a claim
//! (`rule:unselected-nodes-get-nothing`).

use kube_api::Node;

use super::unassigned::{Route, Unassigned};
use super::{Allocator, Effects, Owner, Uid};

impl Unassigned {
    /// Whether the Node may get its block. What the cloud may have routed already is finished
    /// (`rule:begun-alias-is-finished`).
    pub(super) fn may_get(&self) -> bool {
        self.is_selected || self.route() != Route::NotRequested
    }
}

impl Allocator {
    /// Takes in a Node without CIDRs that is not selected. Its key comes into the queue only to
    /// settle a PATCH of unknown outcome.
    pub(super) fn see_unselected(&mut self, uid: &Uid) -> Effects {
        let Some(node) = self.unassigned.get_mut(uid) else { return Effects::default() };
        node.is_selected = false;
        let unsettled = node.outcome().is_open().then(|| node.name.clone());
        let mut effects = self.end_unselected(uid);
        effects.wake.extend(unsettled);
        effects
    }

    /// Frees what is reserved for a Node that is no longer selected, unless it may yet get it.
    pub(crate) fn end_unselected(&mut self, uid: &Uid) -> Effects {
        let mut effects = Effects::default();
        let is_over = |node: &Unassigned| !node.may_get() && !node.outcome().is_open();
        if !self.unassigned.get(uid).is_some_and(|node| is_over(node)) {
            return effects;
        }
        self.close(uid);
        self.clear_findings(uid);
        self.ledger.release(&Owner::Node(uid.clone()));
        self.cloud.waiting.remove(uid);
        effects.merge(self.vm_was_read(uid));
        self.after_release(&mut effects);
        effects
    }

    /// Notes whether a Node with CIDRs is selected; true when that was otherwise before.
    pub(super) fn note_selection(&mut self, node: &Node) -> bool {
        let was_unselected = self.unselected.contains(&node.uid);
        match (was_unselected, node.is_selected) {
            (true, true) => self.unselected.remove(&node.uid),
            (false, false) => self.unselected.insert(node.uid.clone()),
            (true, false) | (false, true) => false,
        }
    }
}
