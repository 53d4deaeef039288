//! What the cluster shows: claims are taken over, replaced and ended.

use cidr::IpNet;
use model::Node;
use tokio::time::Instant;

use super::open::{Open, Phase};
use super::{Allocator, Effects, Owner, Uid, notice};

impl Allocator {
    /// A list begins or ends to be delivered. Between the two nothing is sent: a block that one
    /// part of the list frees may be held by a Node in another part of it (R1).
    pub fn set_in_list(&mut self, in_list: bool) {
        self.in_list = in_list;
    }

    /// Takes in what the cluster says of a live Node. Called for every add and update, and with
    /// the result of a consistent read.
    pub fn observe(&mut self, node: &Node, now: Instant) -> Effects {
        if node.pod_cidrs.is_empty() {
            self.see_empty(node, now)
        } else {
            self.see_assigned(node, now)
        }
    }

    /// Takes in a consistent read of a Node that a worker asked for. A UID that the watch has
    /// meanwhile reported as gone stays gone.
    pub fn observe_read(&mut self, node: &Node, now: Instant) -> Effects {
        if self.open.contains_key(node.uid.as_ref()) {
            self.observe(node, now)
        } else {
            Effects::default()
        }
    }

    fn see_empty(&mut self, node: &Node, now: Instant) -> Effects {
        let mut effects = Effects::default();
        if let Some(open) = self.open.get_mut(&node.uid) {
            open.deleting = node.deleting;
            // Only what was never sent may be given up (R2).
            if node.deleting && open.phase != Phase::Reserved && !open.unresolved {
                self.close(&node.uid);
            }
            return effects;
        }
        // A claim without an open entry is bound: this copy is older than our own write.
        let bound = self.ledger.claim(&Owner::Node(node.uid.clone())).is_some();
        if !bound && !node.deleting {
            self.open.insert(node.uid.clone(), Open::new(node.name.clone(), now));
            effects.wake.push(node.name.clone());
        }
        effects
    }

    fn see_assigned(&mut self, node: &Node, now: Instant) -> Effects {
        let mut effects = Effects::default();
        let (cidrs, garbage) = parse_cidrs(node);
        let owner = Owner::Node(node.uid.clone());
        let open = self.close(&node.uid);
        let was_open = open.is_some();
        let claim = self.ledger.claim(&owner);
        let seen_before = self.names.contains_key(&node.uid);
        if (seen_before || claim.is_some()) && same_set(claim.unwrap_or_default(), &cidrs) {
            self.names.insert(node.uid.clone(), node.name.clone());
            effects.assigned = open.map(|open| now.saturating_duration_since(open.since));
            return effects;
        }
        if was_open || claim.is_some() {
            self.foreign += 1;
        }
        self.forget_findings(&node.uid);
        self.names.insert(node.uid.clone(), node.name.clone());
        let taken = self.ledger.occupy(&owner, &cidrs);
        self.count(&taken.change);
        if !taken.external.is_empty() || !garbage.is_empty() {
            self.external.insert(node.uid.clone(), taken.external.len() + garbage.len());
            effects.notices.push(notice::out_of_range(
                node,
                &taken.external,
                &garbage,
                self.ledger.pools(),
            ));
        }
        for conflict in &taken.conflicts {
            if let Owner::Node(other) = &conflict.other
                // A block that never left this process can still be changed, and will be.
                && self.open.get(other).is_none_or(|open| open.unresolved)
            {
                self.conflicts.insert(pair(&node.uid, other));
                let other_name = self.name_of(other);
                effects.notices.extend(notice::conflict(node, other, &other_name, conflict));
            }
        }
        self.warn_of_pressure(&node.name, &node.uid, &mut effects);
        self.serve_line(&mut effects);
        effects
    }

    /// Ends everything of a UID that is confirmed gone: a DELETE event, a consistent list
    /// without it, or a consistent read. Freed blocks go to the first in line.
    pub fn gone(&mut self, uid: &str) -> Effects {
        let mut effects = Effects::default();
        self.close(uid);
        self.forget_findings(uid);
        self.names.remove(uid);
        self.noticed.retain(|(noticed, _), _| **noticed != *uid);
        let change = self.ledger.release(&Owner::Node(uid.into()));
        self.count(&change);
        self.serve_line(&mut effects);
        effects
    }
}

fn pair(a: &Uid, b: &Uid) -> (Uid, Uid) {
    if a < b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) }
}

fn same_set(a: &[IpNet], b: &[IpNet]) -> bool {
    a.len() == b.len() && a.iter().all(|net| b.contains(net))
}

/// The Node's CIDRs, and the texts that are none (R5).
fn parse_cidrs(node: &Node) -> (Vec<IpNet>, Vec<String>) {
    let mut cidrs = Vec::new();
    let mut garbage = Vec::new();
    for text in &node.pod_cidrs {
        match cidr::parse(text) {
            Ok(net) => cidrs.push(net),
            Err(_) => garbage.push(text.to_string()),
        }
    }
    (cidrs, garbage)
}
