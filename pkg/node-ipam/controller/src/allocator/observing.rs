//! Takes in what the cluster shows: takes over, replaces and ends claims; the audit does so for all Nodes at once.

use std::collections::{BTreeSet, HashSet};
use std::mem;
use std::sync::Arc;

use cidr::{Conflict, IpNet};
use kube_api::{Node, NodeMarks};
use tokio::time::Instant;

use super::unassigned_nodes::{Route, Unassigned};
use super::{Allocator, Effects, Owner, Phase, Uid, findings};
use crate::reconciler::CachedNode;
use crate::second_allocator::{Evidence, Suspect};

/// Number of Nodes with an earlier conflict that get another event when a new Node overlaps them.
const TOLD_AGAIN: usize = 16;

impl Allocator {
    /// A list begins or ends to be delivered. Between the two nothing is sent
    /// (`rule:list-before-allocate`).
    pub(crate) fn set_in_list(&mut self, in_list: bool) {
        if self.in_list && !in_list {
            self.start();
        }
        self.in_list = in_list;
    }

    /// The Nodes to work on that the last list has brought, in its order. Not told one by one: at a
    /// start these are all Nodes of a cluster.
    pub(crate) fn take_listed(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.listed)
    }

    /// Takes in what the cluster says of a live Node. Called for every add and update, and with
    /// the result of a consistent read.
    pub(crate) fn observe(&mut self, cached: &impl CachedNode, now: Instant) -> Effects {
        let node = cached.as_ref();
        if node.pod_cidrs.is_empty() {
            self.see_empty(node, cached.marks(), now)
        } else {
            self.see_assigned(node, now)
        }
    }

    /// Takes in a consistent read of a Node that a worker asked for. A UID that the watch has
    /// meanwhile reported as gone stays gone.
    pub(crate) fn observe_read(&mut self, node: &Node, now: Instant) -> Effects {
        let Some(known) = self.unassigned.get(&node.uid) else { return Effects::default() };
        // The selector of the cache has not marked the answer to a read.
        self.observe(&Node { is_selected: known.is_selected, ..node.clone() }, now)
    }

    fn see_empty(&mut self, node: &Node, marks: Option<&Arc<NodeMarks>>, now: Instant) -> Effects {
        let mut effects = Effects::default();
        if let Some(known) = self.unassigned.get_mut(&node.uid) {
            known.deleting = node.deleting;
            if !node.is_selected {
                return self.see_unselected(&node.uid);
            }
            if !mem::replace(&mut known.is_selected, true) {
                effects.wake.push(known.name.clone());
            }
            // A reserved block may have been sent; only the end of the object frees it.
            if node.deleting && known.phase != Phase::Reserved {
                self.close(&node.uid);
            } else if marks.is_some() && known.marks.as_ref() != marks {
                known.marks = marks.cloned();
                self.reselect(&node.uid, &mut effects);
            }
            return effects;
        }
        // Not unassigned and yet with a claim is bound: this copy is older than our own write.
        let bound = self.ledger.claim(&Owner::Node(node.uid.clone())).is_some();
        if !bound && !node.deleting && node.is_selected {
            let mut unassigned = Unassigned::new(node.name.clone(), marks.cloned(), now);
            // A cloud is asked first.
            unassigned.undelayed = !self.source.is_cloud();
            self.unassigned.insert(node.uid.clone(), Box::new(unassigned));
            let to_work_on = if self.in_list { &mut self.listed } else { &mut effects.wake };
            to_work_on.push(node.name.clone());
        }
        effects
    }

    /// Takes in a Node without CIDRs that is not selected. Its key comes into the queue only to
    /// settle a PATCH of unknown outcome.
    fn see_unselected(&mut self, uid: &Uid) -> Effects {
        let Some(node) = self.unassigned.get_mut(uid) else { return Effects::default() };
        node.is_selected = false;
        let unsettled = node.outcome().is_open().then(|| node.name.clone());
        let mut effects = self.end_unselected(uid);
        effects.wake.extend(unsettled);
        effects
    }

    fn see_assigned(&mut self, node: &Node, now: Instant) -> Effects {
        let mut effects = Effects::default();
        let (cidrs, garbage) = parse_cidrs(node);
        let owner = Owner::Node(node.uid.clone());
        let unsent_and_taken = self.can_still_move(&node.uid) && self.is_contested(&node.uid);
        let waited = self.close(&node.uid);
        let claim = self.ledger.claim(&owner);
        let had_claim = claim.is_some();
        let seen_before = self.assigned.insert(node.uid.clone(), node.name.clone()).is_some();
        let is_known = (seen_before || had_claim) && !unsent_and_taken;
        let is_same = is_same(claim, &cidrs);
        let is_foreign = match &waited {
            _ if !node.is_selected => false,
            // Another allocator may pick the same block; the answer to an open PATCH says who wrote it.
            Some(waited) => !is_same || !waited.outcome().is_open(),
            None => !is_known && self.started.is_some(),
        };
        let is_reselected = self.note_selection(node) && seen_before;
        let evidence = if waited.is_some() { Evidence::SawEmpty } else { Evidence::SeenLate };
        effects.foreign = is_foreign.then(|| Suspect::new(node, evidence));
        let is_no_news = is_known && is_same;
        if is_no_news && !is_reselected {
            if is_foreign {
                self.foreign += 1;
            } else {
                if waited.is_some() {
                    self.note_ours(&node.uid);
                }
                effects.assigned = waited.map(|open| now.saturating_duration_since(open.since));
            }
            return effects;
        }
        // Of a Node that is seen for the first time there is nothing to forget: at a start these are all.
        if seen_before || had_claim || waited.is_some() {
            self.clear_findings(&node.uid);
            if !is_no_news {
                self.foreign += u64::from(node.is_selected && (waited.is_some() || had_claim));
                self.forget_ours(&node.uid);
            }
        }
        if waited.is_some_and(|node| node.route() != Route::NotRequested) {
            self.keep_routed(&node.uid);
        }
        let taken = self.ledger.occupy(&owner, &cidrs);
        self.find_strange(node, &taken.external, &garbage, &mut effects);
        self.find_conflicts(node, &taken.conflicts, &mut effects);
        if node.is_selected {
            self.warn_of_pressure(&node.name, &node.uid, &mut effects);
        }
        // What starts to be used frees nothing that Nodes of a cloud wait for.
        if had_claim || !self.source.is_cloud() {
            self.after_release(&mut effects);
        }
        effects
    }

    /// Notes whether a Node with CIDRs is selected; true when that was otherwise before.
    fn note_selection(&mut self, node: &Node) -> bool {
        let was_unselected = self.unselected.contains(&node.uid);
        match (was_unselected, node.is_selected) {
            (true, true) => self.unselected.remove(&node.uid),
            (false, false) => self.unselected.insert(node.uid.clone()),
            (true, false) | (false, true) => false,
        }
    }

    /// Counts the CIDRs of a Node that lie outside of all pools.
    pub(super) fn count_external(&mut self, uid: &Uid, external: &[IpNet]) {
        let is_selected = !self.unselected.contains(uid);
        let counts = is_selected && self.source.counts_external(self.ledger.pools());
        self.findings.set_external(uid, if counts { external.len() } else { 0 });
    }

    /// Reports CIDRs outside of all pools, and texts that are not CIDRs, unless the Node is not
    /// selected: then its CIDRs are not ours.
    fn find_strange(
        &mut self,
        node: &Node,
        external: &[IpNet],
        garbage: &[String],
        effects: &mut Effects,
    ) {
        self.count_external(&node.uid, external);
        let garbage = if node.is_selected { garbage } else { &[] };
        self.findings.set_garbage(&node.uid, garbage.len());
        let (external, pools) = if node.is_selected && self.source.reports_external() {
            (external, self.ledger.pools())
        } else {
            (&[][..], &[][..])
        };
        let garbage = if self.source.reports_garbage() { garbage } else { &[] };
        if !external.is_empty() || !garbage.is_empty() {
            effects.notices.push(findings::out_of_range(node, external, garbage, pools));
        }
    }

    fn find_conflicts(
        &mut self,
        node: &Node,
        conflicts: &[Conflict<Owner>],
        effects: &mut Effects,
    ) {
        let mut others = HashSet::new();
        let mut pairs = Vec::new();
        for conflict in conflicts {
            match &conflict.other {
                Owner::Service(range) => {
                    self.findings.add_in_services(&node.uid);
                    effects.notices.push(findings::in_services(node, &conflict.mine, range));
                }
                // Count a pair for both Nodes or for neither, so one release undoes both.
                Owner::Node(other)
                    if self.can_still_move(other) && !self.findings.has_conflict(other) => {}
                // Two Nodes with CIDRs of both families may overlap twice.
                Owner::Node(other) if others.insert(other) => pairs.push((other, conflict)),
                Owner::Node(_)
                | Owner::Excluded(_)
                | Owner::Refused(_)
                | Owner::Resting(_)
                | Owner::Aliases(_) => {}
            }
        }
        self.tell_conflicts(node, &pairs, effects);
    }

    /// Warns each of thousands of Nodes with one CIDR when it comes, and not again with every later one.
    fn tell_conflicts(
        &mut self,
        node: &Node,
        pairs: &[(&Uid, &Conflict<Owner>)],
        effects: &mut Effects,
    ) {
        let Some((first, conflict)) = pairs.first() else { return };
        let name = self.name_of(first);
        effects.notices.push(findings::conflict_of_new(node, &name, conflict, pairs.len() - 1));
        let mut again = 0;
        for (other, conflict) in pairs {
            let is_new = self.findings.add_conflict(&node.uid, other);
            again += usize::from(!is_new);
            if is_new || again <= TOLD_AGAIN {
                let name = self.name_of(other);
                effects.notices.push(findings::conflict_of_other(node, other, &name, conflict));
            }
        }
    }

    /// Clears the findings about a Node's present CIDRs; called before its claim on them ends.
    pub(super) fn clear_findings(&mut self, uid: &Uid) {
        let claim = self.claim(uid);
        let counted = claim.iter().filter(|_| self.findings.has_conflict(uid));
        let owners = counted.flat_map(|cidr| self.ledger.overlapping(cidr));
        let others: HashSet<Uid> = owners
            .filter_map(|(owner, _)| match owner {
                Owner::Node(other) if other != *uid => Some(other),
                _ => None,
            })
            .collect();
        self.findings.clear(uid, others.iter());
    }

    /// A block that never left this process is no conflict: another one will be taken
    /// (`rule:unknown-outcome-ends`).
    fn can_still_move(&self, uid: &Uid) -> bool {
        self.unassigned.get(uid).is_some_and(|node| !node.has_left())
    }

    /// Ends everything of a UID that is confirmed gone: a DELETE event, a consistent list
    /// without it, or a consistent read. Freed blocks go to the first in line.
    pub(crate) fn gone(&mut self, uid: &str, now: Instant) -> Effects {
        let mut effects = Effects::default();
        let closed = self.close(uid);
        let uid = Uid::from(uid);
        self.clear_findings(&uid);
        self.findings.remove(&uid);
        let was_assigned = self.assigned.remove(&uid).is_some();
        self.unselected.remove(&uid);
        if was_assigned || closed.is_some_and(|node| node.has_left()) {
            self.ledger.rest(&uid, now);
        }
        self.ledger.release(&Owner::Node(uid.clone()));
        self.forget_at_cloud(&uid, &mut effects);
        self.after_release(&mut effects);
        effects
    }
}

fn is_same(claim: Option<&[IpNet]>, cidrs: &[IpNet]) -> bool {
    let claim = claim.unwrap_or_default();
    claim.len() == cidrs.len() && claim.iter().all(|net| cidrs.contains(net))
}

/// The Node's CIDRs, and those of its texts that are not CIDRs.
fn parse_cidrs(node: &Node) -> (Vec<IpNet>, Vec<String>) {
    let mut cidrs = Vec::new();
    let mut garbage = Vec::new();
    for text in node.pod_cidrs.iter() {
        match cidr::parse(text) {
            Ok(net) => cidrs.push(net),
            Err(_) => garbage.push(text.to_string()),
        }
    }
    (cidrs, garbage)
}

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
        // A lost key would leave its Node waiting without end; an idle one costs nothing.
        let waiting: BTreeSet<_> = self.unassigned.values().map(|node| node.name.clone()).collect();
        effects.wake.extend(waiting);
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
        (self.is_live(uid), self.ledger.claim(&Owner::Node(uid.clone())).map(Box::from))
    }
}
