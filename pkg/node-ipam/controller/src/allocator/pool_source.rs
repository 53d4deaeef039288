//! [`PoolSource`]: where the pools of an allocator come from, and which of them may serve a Node.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use cidr::{IpNet, Pool};
use kube_api::NodeMarks;
use tokio::time::Instant;

use super::shortage::Shortage;
use crate::cluster_cidr::ClusterCidrSpec;
use crate::cluster_cidr::plan::Rank;
use crate::cluster_cidr::selector::Selector;
use crate::ledger::Uid;
use crate::pressure;

/// A ClusterCIDR that has no finalizer after this time is passed over: whatever keeps the API server
/// from storing it must not keep Nodes from less specific ClusterCIDRs.
const HELD_WITHIN: Duration = Duration::from_secs(60);

/// Number of an entry, never given twice.
pub(super) type EntryId = u32;

/// The entries that may serve a Node, the one to be asked first in front.
pub(super) type Candidates = Box<[EntryId]>;

/// Whether a ClusterCIDR gives out blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServingState {
    /// Without the finalizer yet, so blocks are not given out (`rule:finalizer-before-use`).
    Unheld,
    /// With the finalizer; blocks are given out.
    Serving,
    /// Held, and kept by an operator from giving out blocks (`rule:draining-pool-gives-nothing`).
    Draining,
    /// Being deleted; no more blocks are given out.
    Terminating,
}

impl ServingState {
    /// The value of the label `state` in metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Unheld => "unheld",
            Self::Serving => "serving",
            Self::Draining => "draining",
            Self::Terminating => "terminating",
        }
    }
}

/// One ClusterCIDR.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: EntryId,
    pub(super) uid: Uid,
    pub(super) name: Arc<str>,
    pub(super) state: ServingState,
    pub(super) spec: ClusterCidrSpec,
    pub(super) selector: Option<Selector>,
    pub(super) rank: Rank,
    /// Places of its pools in the ledger.
    pub(super) pools: Range<usize>,
    /// When it was first seen.
    pub(super) seen: Instant,
}

/// What a cloud decides about the pod CIDRs of its Nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloudSource {
    /// The cloud names the CIDRs of each Node; a pool only shows how much of it is used.
    Exact,
    /// The pool gives a block, and the cloud routes it before the Node has it.
    Routed,
}

/// The part of an allocator's state that is empty unless pod CIDRs come from a cloud.
#[derive(Clone, Debug, Default)]
pub(super) struct CloudMemory {
    /// Nodes with CIDRs that a PATCH of this process has written.
    pub(super) ours: HashSet<Uid>,
    /// Nodes without CIDRs that were there at the start and whose VMs were not read yet.
    pub(super) unread: HashSet<Uid>,
    /// Nodes whose CIDRs another Node has; a claim that ends wakes all of them.
    pub(super) waiting: BTreeSet<Uid>,
}

/// What an allocator's pools come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The flags: pools never change, and every Node is served from one pool of each family.
    Flags,
    /// Objects that come and go.
    ClusterCidrs,
    /// The first pool of the flags, or no pool.
    Cloud(CloudSource),
}

/// The source of an allocator's pools, chosen at construction. What differs between allocators is a
/// property of their source.
#[derive(Clone, Debug)]
pub(super) struct PoolSource {
    kind: Kind,
    /// The valid ClusterCIDRs, by rank; none where pools come from elsewhere.
    entries: Vec<Entry>,
    next_id: EntryId,
    /// Ranges of the flags that give out nothing (`rule:draining-pool-gives-nothing`).
    pub(super) drained: Vec<IpNet>,
    /// How long to wait for the cloud to label a Node.
    pub(super) label_wait: Duration,
}

/// The entries that may serve a Node.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) candidates: Candidates,
    /// Whether one of them selects the Node by its marks.
    pub(super) selected: bool,
}

impl Entry {
    /// How many requirements its selector has that this Node fulfils; 0 without a selector, `None`
    /// when it is not for this Node.
    pub(super) fn fits(&self, name: &str, marks: &NodeMarks) -> Option<usize> {
        self.selector.as_ref().map_or(Some(0), |selector| selector.fits(name, marks))
    }
}

impl PoolSource {
    /// The pools of the flags.
    pub(super) fn flags() -> Self {
        let (drained, label_wait) = (Vec::new(), Duration::ZERO);
        Self { kind: Kind::Flags, entries: Vec::new(), next_id: 0, drained, label_wait }
    }

    /// ClusterCIDRs, all still unknown.
    pub(super) fn cluster_cidrs(label_wait: Duration) -> Self {
        Self { kind: Kind::ClusterCidrs, label_wait, ..Self::flags() }
    }

    /// A cloud.
    pub(super) fn cloud(source: CloudSource) -> Self {
        Self { kind: Kind::Cloud(source), ..Self::flags() }
    }

    /// Whether a cloud knows of pod CIDRs too.
    pub(super) fn is_cloud(&self) -> bool {
        matches!(self.kind, Kind::Cloud(_))
    }

    /// Whether pools come and go with ClusterCIDRs.
    pub(super) fn takes_from_objects(&self) -> bool {
        self.kind == Kind::ClusterCidrs
    }

    /// Whether a cloud routes blocks before Nodes have them.
    pub(super) fn is_routed(&self) -> bool {
        self.kind == Kind::Cloud(CloudSource::Routed)
    }

    /// Whether a CIDR outside of all pools counts as such: without a pool nothing is outside of it.
    pub(super) fn counts_external(&self, pools: &[Pool]) -> bool {
        !self.is_cloud() || !pools.is_empty()
    }

    /// Whether an operator is warned of a CIDR outside of all pools. Where ranges come and go with
    /// ClusterCIDRs, or the cloud has ranges of its own, such a CIDR is normal.
    pub(super) fn reports_external(&self) -> bool {
        self.kind == Kind::Flags
    }

    /// Whether an operator is warned of a text that is no CIDR while the Node lives.
    pub(super) fn reports_garbage(&self) -> bool {
        !self.is_cloud()
    }

    /// Whether a pool that has crossed a warning line is worth a warning: where another pool of the
    /// family serves the same Nodes, the family counts as a whole. For clouds only metrics show it.
    pub(super) fn warns(&self, pools: &[Pool], pool: &Pool, percent: u8) -> bool {
        match self.kind {
            Kind::Flags => {
                is_family_at(pools.iter().filter(|it| !self.is_drained(it)), pool, percent)
            }
            Kind::ClusterCidrs => true,
            Kind::Cloud(_) => false,
        }
    }

    /// The places of the pools that serve a Node with these candidates.
    pub(super) fn serving(
        &self,
        candidates: &Candidates,
        pools: &[Pool],
    ) -> Result<Vec<usize>, Shortage> {
        if self.kind != Kind::ClusterCidrs {
            return self.serving_by_flags(pools);
        }
        let known = || candidates.iter().filter_map(|id| self.by_id(*id));
        let has_free =
            |entry: &&Entry| pools[entry.pools.clone()].iter().all(|pool| pool.free() > 0);
        let now = Instant::now();
        // Wait for a better ClusterCIDR that is about to get its finalizer: pod CIDRs are immutable.
        let may_serve = |entry: &&Entry| match entry.state {
            ServingState::Serving => true,
            ServingState::Unheld => now < entry.seen + HELD_WITHIN,
            ServingState::Draining | ServingState::Terminating => false,
        };
        match known().filter(may_serve).find(has_free) {
            Some(entry) if entry.state == ServingState::Serving => {
                Ok(entry.pools.clone().collect())
            }
            Some(entry) => Err(Shortage::Unheld(entry.name.to_string())),
            None => {
                let names = |state| {
                    known()
                        .filter(move |it| it.state == state)
                        .map(|it| &*it.name)
                        .collect::<Vec<_>>()
                };
                let (serving, unheld) = (names(ServingState::Serving), names(ServingState::Unheld));
                Err(Shortage::of(&serving, &unheld, &names(ServingState::Draining)))
            }
        }
    }

    /// The place of the first pool with a free block of each family, or of its first pool if all are
    /// full. Draining pools are left out.
    fn serving_by_flags(&self, pools: &[Pool]) -> Result<Vec<usize>, Shortage> {
        let mut places: Vec<usize> = Vec::with_capacity(2);
        for (place, pool) in pools.iter().enumerate().filter(|(_, pool)| !self.is_drained(pool)) {
            let of_family = |before: &&mut usize| pools[**before].family() == pool.family();
            match places.iter_mut().find(of_family) {
                None => places.push(place),
                Some(before) if pools[*before].free() == 0 && pool.free() > 0 => *before = place,
                Some(_) => {}
            }
        }
        let is_short = |pool: &Pool| {
            let is_full = |place: &usize| {
                pools[*place].family() == pool.family() && pools[*place].free() == 0
            };
            places.iter().any(is_full)
        };
        let drained = pools.iter().filter(|pool| self.is_drained(pool));
        let drained: Vec<String> =
            drained.filter(|it| is_short(it)).map(|it| cidr::canonical(&it.cidr())).collect();
        if drained.is_empty() { Ok(places) } else { Err(Shortage::Draining(drained.join(", "))) }
    }

    /// Whether the flags keep this pool from giving out blocks.
    pub(super) fn is_drained(&self, pool: &Pool) -> bool {
        self.drained.contains(&pool.cidr())
    }

    /// Whether a reserved claim may no longer be sent because its ClusterCIDR gives out nothing more
    /// (`rule:cluster-cidr-outlives-its-claims`).
    pub(super) fn has_withdrawn(&self, claim: &[IpNet], pools: &[Pool]) -> bool {
        let is_block =
            |pool: &Pool, cidr: &IpNet| pool.mask() == cidr.prefix_len() && has(pool, cidr);
        let may_withdraw = self.kind == Kind::ClusterCidrs && !claim.is_empty();
        may_withdraw && !self.serves_all(claim, pools, &[ServingState::Serving], is_block)
    }

    /// Whether all these CIDRs lie in the ranges of one ClusterCIDR in use.
    pub(super) fn covers(&self, claim: &[IpNet], pools: &[Pool]) -> bool {
        self.serves_all(claim, pools, &[ServingState::Serving, ServingState::Draining], has)
    }

    fn serves_all(
        &self,
        cidrs: &[IpNet],
        pools: &[Pool],
        states: &[ServingState],
        of: impl Fn(&Pool, &IpNet) -> bool,
    ) -> bool {
        self.entries.iter().any(|entry| {
            let pools = &pools[entry.pools.clone()];
            let is_served = |cidr| pools.iter().any(|pool| of(pool, cidr));
            states.contains(&entry.state) && cidrs.iter().all(is_served)
        })
    }

    /// The name of the ClusterCIDR and the state of each pool.
    pub(super) fn states(&self, pools: &[Pool]) -> Vec<(Option<Arc<str>>, ServingState)> {
        let of_flags = |pool: &Pool| {
            let is_drained = self.is_drained(pool);
            (None, if is_drained { ServingState::Draining } else { ServingState::Serving })
        };
        let mut states: Vec<_> = pools.iter().map(of_flags).collect();
        for entry in &self.entries {
            states[entry.pools.clone()].fill((Some(entry.name.clone()), entry.state));
        }
        states
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn by_id(&self, id: EntryId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| *entry.uid == *uid)
    }

    pub(super) fn by_uid_mut(&mut self, uid: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| *entry.uid == *uid)
    }

    /// The name of the ClusterCIDR that this pool is of.
    pub(super) fn name_of_pool(&self, place: usize) -> Option<&Arc<str>> {
        self.entries.iter().find(|entry| entry.pools.contains(&place)).map(|entry| &entry.name)
    }

    /// The number of the next entry.
    pub(super) fn take_id(&mut self) -> EntryId {
        self.next_id += 1;
        self.next_id
    }

    /// Adds an entry whose pools are the last of the ledger.
    pub(super) fn insert(&mut self, entry: Entry) {
        let place = self.entries.partition_point(|other| other.rank < entry.rank);
        self.entries.insert(place, entry);
    }

    /// Takes an entry out. Its pools are to leave the ledger: those behind them move up.
    pub(super) fn remove(&mut self, uid: &str) -> Option<Entry> {
        let place = self.entries.iter().position(|entry| *entry.uid == *uid)?;
        let removed = self.entries.remove(place);
        for entry in &mut self.entries {
            if entry.pools.start >= removed.pools.end {
                entry.pools.start -= removed.pools.len();
                entry.pools.end -= removed.pools.len();
            }
        }
        Some(removed)
    }

    /// The ClusterCIDRs that may serve a Node.
    pub(super) fn choice(&self, name: &str, marks: &NodeMarks) -> Choice {
        let mut fitting: Vec<(bool, Reverse<usize>, EntryId)> = Vec::new();
        for entry in self.entries.iter().filter(|it| it.state != ServingState::Terminating) {
            if let Some(fulfilled) = entry.fits(name, marks) {
                fitting.push((entry.selector.is_none(), Reverse(fulfilled), entry.id));
            }
        }
        // Stable: among equals the order of the ranks stays.
        fitting.sort_by_key(|&(is_general, fulfilled, _)| (is_general, fulfilled));
        let selected = fitting.first().is_some_and(|&(is_general, ..)| !is_general);
        Choice { candidates: fitting.into_iter().map(|(.., id)| id).collect(), selected }
    }
}

fn has(pool: &Pool, cidr: &IpNet) -> bool {
    pool.cidr().contains(cidr)
}

/// Whether all of these pools of one family, taken together, are used to so many percent.
fn is_family_at<'a>(
    pools: impl Iterator<Item = &'a Pool> + Clone,
    one: &Pool,
    percent: u8,
) -> bool {
    let of_family = || pools.clone().filter(|pool| pool.family() == one.family());
    let (used, blocks) = (of_family().map(Pool::used).sum(), of_family().map(Pool::blocks).sum());
    pressure::at_least(used, blocks, percent.into())
}

#[cfg(test)]
mod tests;
