//! Pools that come and go with ClusterCIDRs, and what a Node is served from.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use cidr::{IpNet, Pool};
use tokio::time::Instant;

use super::pool_source::{Choice, Entry, PoolSource, ServingState};
use super::{Allocator, Effects, Owner, Phase, Shortage, Uid};
use crate::cluster_cidr::plan::Rank;
use crate::cluster_cidr::{ClusterCidrSpec, Plan};

/// On a Node whose labels its cloud has not set yet.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// A ClusterCIDR that is in order, as the watch shows it.
#[derive(Debug)]
pub(crate) struct SeenClusterCidr {
    /// The ClusterCIDR's name.
    pub(crate) name: Arc<str>,
    /// The ClusterCIDR's UID.
    pub(crate) uid: Uid,
    /// Whether it gives out blocks.
    pub(crate) state: ServingState,
    /// The fields of the object.
    pub(crate) spec: ClusterCidrSpec,
    /// The pools and the selector that the fields describe.
    pub(crate) plan: Plan,
}

/// How many Nodes have addresses of a ClusterCIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// A list of Nodes is being taken in.
    Unknown,
    /// Zero Nodes.
    Unused,
    /// At least one Node.
    By(usize),
}

impl Holding {
    fn of(nodes: usize) -> Self {
        if nodes == 0 { Self::Unused } else { Self::By(nodes) }
    }
}

/// How full a range of a ClusterCIDR is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeUse {
    /// The range.
    pub(crate) cidr: IpNet,
    /// How many blocks it has.
    pub(crate) blocks: u128,
    /// How many of them are used.
    pub(crate) used: u128,
}

impl Allocator {
    /// An allocator whose pools come from ClusterCIDRs, all still unknown. A Node that its cloud has
    /// not labelled yet waits for that for `label_wait`.
    pub(crate) fn of_cluster_cidrs(service_ranges: &[IpNet], label_wait: Duration) -> Self {
        let source = PoolSource::cluster_cidrs(label_wait);
        Self { source, ..Self::new(Vec::new(), service_ranges) }
    }

    /// Takes in a ClusterCIDR that is new or has changed.
    pub(crate) fn see_cluster_cidr(&mut self, seen: SeenClusterCidr) -> Effects {
        let mut effects = Effects::default();
        match self.source.by_uid_mut(&seen.uid) {
            // A deletion is never taken back, and may be known here before the watch tells it.
            Some(known) if known.state == ServingState::Terminating => {}
            Some(known) if known.spec == seen.spec => known.state = seen.state,
            Some(_) => {
                // Its fields do not change, unless somebody has loosened the CRD.
                effects.merge(self.cluster_cidr_gone(&seen.uid));
                self.add_cluster_cidr(seen, &mut effects);
            }
            None => self.add_cluster_cidr(seen, &mut effects),
        }
        self.after_release(&mut effects);
        effects
    }

    /// A ClusterCIDR gives out nothing more.
    pub(crate) fn terminate(&mut self, uid: &str) {
        if let Some(entry) = self.source.by_uid_mut(uid) {
            entry.state = ServingState::Terminating;
        }
    }

    /// A ClusterCIDR is gone, or is not in order any more. What Nodes have of it stays theirs.
    pub(crate) fn cluster_cidr_gone(&mut self, uid: &str) -> Effects {
        let Some(entry) = self.source.remove(uid) else {
            return Effects::default();
        };
        let ranges = self.ranges(&entry.pools);
        self.ledger.remove_pools(entry.pools);
        self.find_external(&ranges);
        Effects {
            ended: ranges.into_iter().map(|range| (range, entry.name.clone())).collect(),
            ..Effects::default()
        }
    }

    /// How many Nodes have addresses of a ClusterCIDR with these ranges that gives out nothing, or cannot be used,
    /// and of no other that is in use (`rule:cluster-cidr-outlives-its-claims`).
    pub(crate) fn holding(&self, ranges: &[IpNet]) -> Holding {
        if self.in_list {
            return Holding::Unknown;
        }
        Holding::of(self.holders(ranges).iter().filter(|uid| !self.is_covered(uid)).count())
    }

    /// How many Nodes keep a ClusterCIDR from being drained; `None` when it is not draining. A Node
    /// whose blocks another one in service would give out counts for that one.
    pub(crate) fn draining_nodes(&self, uid: &str) -> Option<Holding> {
        let entry = self.source.by_uid(uid).filter(|it| it.state == ServingState::Draining)?;
        if self.in_list {
            return Some(Holding::Unknown);
        }
        let holders = self.holders(&self.ranges(&entry.pools));
        Some(Holding::of(holders.iter().filter(|uid| self.is_withdrawn(uid)).count()))
    }

    /// How full a ClusterCIDR is; `None` for one that is not known.
    pub(crate) fn use_of(&self, uid: &str) -> Option<Vec<RangeUse>> {
        let entry = self.source.by_uid(uid)?;
        let pools = self.ledger.pools()[entry.pools.clone()].iter();
        let used = |it: &Pool| RangeUse { cidr: it.cidr(), blocks: it.blocks(), used: it.used() };
        Some(pools.map(used).collect())
    }

    /// Whether a ClusterCIDR waits to be held against deletion.
    pub(crate) fn has_unheld(&self) -> bool {
        self.source.entries().iter().any(|entry| entry.state == ServingState::Unheld)
    }

    /// Until when a Node is to wait for its labels (`rule:unlabelled-nodes-wait`).
    pub(crate) fn awaits_labels(&mut self, uid: &Uid, now: Instant) -> Option<Instant> {
        let until = self.labelled_by(uid).filter(|until| *until > now)?;
        let node = self.unassigned.get_mut(uid)?;
        if node.phase != Phase::Pending {
            return None;
        }
        node.undelayed = false;
        Some(until)
    }

    /// When a Node without labels is served all the same; `None` when it need not wait.
    pub(super) fn labelled_by(&self, uid: &Uid) -> Option<Instant> {
        let node = self.unassigned.get(uid)?;
        let until = node.since + self.source.label_wait;
        let marks = node.marks.as_ref()?;
        if !marks.taints.iter().any(|taint| **taint == *UNINITIALIZED) {
            return None;
        }
        let choice = self.choice(uid);
        (!choice.selected && !choice.candidates.is_empty()).then_some(until)
    }

    /// The places of the pools that serve a Node.
    pub(super) fn serving(&self, uid: &Uid) -> Result<Vec<usize>, Shortage> {
        let chosen;
        let candidates = match self.unassigned.get(uid).map(|node| &node.phase) {
            Some(Phase::Starved(position)) => &position.queue,
            _ => {
                chosen = self.choice(uid).candidates;
                &chosen
            }
        };
        self.source.serving(candidates, self.ledger.pools())
    }

    /// Whether a Node's reserved blocks may no longer be sent, because their ClusterCIDR gives out
    /// nothing more (`rule:cluster-cidr-outlives-its-claims`).
    pub(super) fn is_withdrawn(&self, uid: &Uid) -> bool {
        self.source.has_withdrawn(self.claim(uid), self.ledger.pools())
    }

    /// Whether all addresses of a Node lie in one ClusterCIDR that is in use.
    fn is_covered(&self, uid: &Uid) -> bool {
        self.source.covers(self.claim(uid), self.ledger.pools())
    }

    /// The ClusterCIDRs that may serve a Node; empty with the pools of the flags.
    pub(super) fn choice(&self, uid: &Uid) -> Choice {
        let Some(node) = self.unassigned.get(uid) else { return Choice::default() };
        let unmarked = kube_api::NodeMarks::default();
        self.source.choice(&node.name, node.marks.as_deref().unwrap_or(&unmarked))
    }

    /// The labels or taints of a Node have changed.
    pub(super) fn reselect(&mut self, uid: &Uid, effects: &mut Effects) {
        match self.unassigned.get(uid).map(|node| &node.phase) {
            // It may have waited for this.
            Some(Phase::Pending) => effects.wake.push(self.name_of(uid)),
            Some(Phase::Starved(_)) => {
                self.change_queue(uid);
                self.serve_starved(effects);
            }
            Some(Phase::Reserved) | None => {}
        }
    }

    /// Blocks may have become free: they go to those who wait, and ClusterCIDRs that are to go may.
    pub(super) fn after_release(&mut self, effects: &mut Effects) {
        self.serve_starved(effects);
        self.wake_waiting(effects);
        let terminating =
            self.source.entries().iter().filter(|it| it.state == ServingState::Terminating);
        for entry in terminating {
            let pools = &self.ledger.pools()[entry.pools.clone()];
            let is_held =
                |owner: &Owner| matches!(owner, Owner::Node(uid) if !self.is_covered(uid));
            if !pools.iter().any(|pool| self.ledger.is_held(&pool.cidr(), is_held)) {
                effects.released.push(entry.name.clone());
            }
        }
    }

    fn add_cluster_cidr(&mut self, seen: SeenClusterCidr, effects: &mut Effects) {
        let SeenClusterCidr { name, uid, state, spec, plan } = seen;
        let rank = Rank::of(&name, &plan);
        let pools = self.ledger.add_pools(plan.pools);
        let ranges = self.ranges(&pools);
        let (id, selector) = (self.source.take_id(), plan.selector);
        self.source.insert(Entry {
            id,
            uid: uid.clone(),
            name,
            state,
            spec,
            selector,
            rank,
            pools,
            seen: Instant::now(),
        });
        self.find_external(&ranges);
        self.offer(&uid, effects);
    }

    /// Tells those who wait of a new ClusterCIDR that is for them.
    fn offer(&mut self, uid: &str, effects: &mut Effects) {
        let Some(entry) = self.source.by_uid(uid) else { return };
        let unmarked = kube_api::NodeMarks::default();
        let mut starved = Vec::new();
        for (node_uid, node) in &self.unassigned {
            let marks = node.marks.as_deref().unwrap_or(&unmarked);
            if entry.fits(&node.name, marks).is_none() {
                continue;
            }
            match node.phase {
                Phase::Starved(_) => starved.push(node_uid.clone()),
                Phase::Pending => effects.wake.push(node.name.clone()),
                Phase::Reserved => {}
            }
        }
        for uid in starved {
            self.change_queue(&uid);
        }
    }

    /// The ranges of the pools at these places.
    fn ranges(&self, pools: &Range<usize>) -> Vec<IpNet> {
        self.ledger.pools()[pools.clone()].iter().map(Pool::cidr).collect()
    }

    /// The Nodes whose claims overlap one of these ranges.
    fn holders(&self, ranges: &[IpNet]) -> BTreeSet<Uid> {
        let claims = ranges.iter().flat_map(|range| self.ledger.overlapping(range));
        let node = |(owner, _)| if let Owner::Node(uid) = owner { Some(uid) } else { None };
        claims.filter_map(node).collect()
    }

    /// Counts again which CIDRs of Nodes lie in no pool, after these ranges became pools or ceased to
    /// be.
    fn find_external(&mut self, ranges: &[IpNet]) {
        let holders = self.holders(ranges).into_iter();
        for uid in holders.filter(|uid| !self.unselected.contains(uid)).collect::<Vec<_>>() {
            let claim = self.claim(&uid);
            let inside =
                |cidr: &&IpNet| self.ledger.pools().iter().any(|it| it.indices(cidr).is_some());
            let outside = claim.iter().filter(|cidr| !inside(cidr)).count();
            self.findings.set_external(&uid, outside);
        }
    }
}
