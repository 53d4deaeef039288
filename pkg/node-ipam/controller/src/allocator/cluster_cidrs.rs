//! Pools that come and go with ClusterCIDRs, and what a Node is served from.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cidr::{IpNet, Pool};
use tokio::time::Instant;

use super::catalogue::{Catalogue, Choice, Entry, Standing};
use super::{Allocator, Effects, Owner, Phase, Shortage, Uid};
use crate::cluster_cidr::plan::Rank;
use crate::cluster_cidr::{ClusterCidrSpec, Plan};

/// On a Node whose labels its cloud has not set yet.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// A ClusterCIDR that has no finalizer after this time is passed over: whatever keeps the API server
/// from storing it must not keep Nodes from those that are further away.
const HELD_WITHIN: Duration = Duration::from_secs(60);

/// How many ClusterCIDRs a message names.
const NAMED: usize = 5;

/// A ClusterCIDR that is in order, as the watch shows it.
#[derive(Debug)]
pub(crate) struct SeenClusterCidr {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its UID.
    pub(crate) uid: Uid,
    /// Whether it gives out blocks.
    pub(crate) standing: Standing,
    /// What it says.
    pub(crate) spec: ClusterCidrSpec,
    /// What that comes to.
    pub(crate) plan: Plan,
}

/// Who has addresses of a ClusterCIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// A list of Nodes is being taken in.
    Unknown,
    /// No Node.
    Nobody,
    /// So many Nodes.
    By(usize),
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
    /// An allocator whose pools come from ClusterCIDRs, none of which is known yet. A Node that its
    /// cloud is still to label waits for that for `label_wait`.
    pub(crate) fn of_cluster_cidrs(service_ranges: &[IpNet], label_wait: Duration) -> Self {
        let catalogue = Some(Box::new(Catalogue::new(label_wait)));
        Self { catalogue, ..Self::new(Vec::new(), service_ranges) }
    }

    /// Takes in a ClusterCIDR that is new or has changed.
    pub(crate) fn see_cluster_cidr(&mut self, seen: SeenClusterCidr) -> Effects {
        let mut effects = Effects::default();
        let Some(catalogue) = &mut self.catalogue else { return effects };
        match catalogue.by_uid_mut(&seen.uid) {
            // A deletion is never taken back, and may be known here before the watch tells it.
            Some(known) if known.standing == Standing::Terminating => {}
            Some(known) if known.spec == seen.spec => known.standing = seen.standing,
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
        if let Some(entry) = self.catalogue.as_mut().and_then(|it| it.by_uid_mut(uid)) {
            entry.standing = Standing::Terminating;
        }
    }

    /// A ClusterCIDR is gone, or is not in order any more. What Nodes have of it stays theirs.
    pub(crate) fn cluster_cidr_gone(&mut self, uid: &str) -> Effects {
        let Some(entry) = self.catalogue.as_mut().and_then(|it| it.remove(uid)) else {
            return Effects::default();
        };
        let ranges: Vec<IpNet> =
            self.ledger.pools()[entry.pools.clone()].iter().map(Pool::cidr).collect();
        self.ledger.remove_pools(entry.pools.clone());
        self.counters.remove_pools(entry.pools);
        self.find_external(&ranges);
        Effects {
            ended: ranges.into_iter().map(|range| (range, entry.name.clone())).collect(),
            ..Effects::default()
        }
    }

    /// Who has addresses of a ClusterCIDR with these ranges that gives out nothing, or cannot be used,
    /// and of no other that is in use (`rule:cluster-cidr-outlives-its-claims`).
    pub(crate) fn holding(&self, ranges: &[IpNet]) -> Holding {
        if self.in_list {
            return Holding::Unknown;
        }
        match self.holders(ranges).iter().filter(|uid| !self.is_covered(uid)).count() {
            0 => Holding::Nobody,
            nodes => Holding::By(nodes),
        }
    }

    /// How full a ClusterCIDR is; `None` for one that is not known.
    pub(crate) fn use_of(&self, uid: &str) -> Option<Vec<RangeUse>> {
        let entry = self.catalogue.as_ref()?.by_uid(uid)?;
        let pools = self.ledger.pools()[entry.pools.clone()].iter();
        Some(
            pools
                .map(|pool| RangeUse {
                    cidr: pool.cidr(),
                    blocks: pool.blocks(),
                    used: pool.used(),
                })
                .collect(),
        )
    }

    /// Whether a ClusterCIDR waits to be held against deletion.
    pub(crate) fn has_unheld(&self) -> bool {
        let mut entries = self.catalogue.iter().flat_map(|it| it.entries());
        entries.any(|entry| entry.standing == Standing::Unheld)
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
        let until = node.since + self.catalogue.as_ref()?.label_wait;
        let marks = node.marks.as_ref()?;
        if !marks.taints.iter().any(|taint| **taint == *UNINITIALIZED) {
            return None;
        }
        let choice = self.choice(uid);
        (!choice.selected && !choice.candidates.is_empty()).then_some(until)
    }

    /// The places of the pools that a Node is to be served from.
    pub(super) fn serving(&self, uid: &Uid) -> Result<Vec<usize>, Shortage> {
        let Some(catalogue) = &self.catalogue else {
            return Ok(first_with_room(self.ledger.pools()));
        };
        let chosen;
        let candidates = match self.unassigned.get(uid).map(|node| &node.phase) {
            Some(Phase::Starved(place)) => &place.line,
            _ => {
                chosen = self.choice(uid).candidates;
                &chosen
            }
        };
        let known = || candidates.iter().filter_map(|id| catalogue.by_id(*id));
        let has_free = |entry: &&Entry| {
            self.ledger.pools()[entry.pools.clone()].iter().all(|pool| pool.free() > 0)
        };
        let now = Instant::now();
        // One that is held at once is waited for: what a Node is given cannot be changed.
        let may_serve = |entry: &&Entry| match entry.standing {
            Standing::Serving => true,
            Standing::Unheld => now < entry.seen + HELD_WITHIN,
            Standing::Terminating => false,
        };
        match known().filter(may_serve).find(has_free) {
            Some(entry) if entry.standing == Standing::Serving => Ok(entry.pools.clone().collect()),
            Some(entry) => Err(Shortage::Unheld(entry.name.to_string())),
            None => Err(why_none(known())),
        }
    }

    /// Whether no ClusterCIDR gives out the blocks that are reserved for a Node any more
    /// (`rule:cluster-cidr-outlives-its-claims`).
    pub(super) fn is_withdrawn(&self, uid: &Uid) -> bool {
        if self.catalogue.is_none() {
            return false;
        }
        let claim = self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default();
        let is_block =
            |pool: &Pool, cidr: &IpNet| pool.mask() == cidr.prefix_len() && has(pool, cidr);
        !claim.is_empty() && !self.serves_all(claim, is_block)
    }

    /// Whether all addresses of a Node are of one ClusterCIDR that is in use.
    fn is_covered(&self, uid: &Uid) -> bool {
        let claim = self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default();
        self.serves_all(claim, has)
    }

    /// Whether one ClusterCIDR that is in use has a pool for each of these.
    fn serves_all(&self, cidrs: &[IpNet], of: impl Fn(&Pool, &IpNet) -> bool) -> bool {
        let mut entries = self.catalogue.iter().flat_map(|it| it.entries());
        entries.any(|entry| {
            let pools = &self.ledger.pools()[entry.pools.clone()];
            let is_had = |cidr| pools.iter().any(|pool| of(pool, cidr));
            entry.standing == Standing::Serving && cidrs.iter().all(is_had)
        })
    }

    /// Which ClusterCIDRs may serve a Node; empty where there are none.
    pub(super) fn choice(&self, uid: &Uid) -> Choice {
        let Some(catalogue) = &self.catalogue else { return Choice::default() };
        let Some(node) = self.unassigned.get(uid) else { return Choice::default() };
        catalogue
            .choice(&node.name, node.marks.as_deref().unwrap_or(&kube_api::NodeMarks::default()))
    }

    /// What a Node is selected by has changed.
    pub(super) fn reselect(&mut self, uid: &Uid, effects: &mut Effects) {
        match self.unassigned.get(uid).map(|node| &node.phase) {
            // It may have waited for this.
            Some(Phase::Pending) => effects.wake.push(self.name_of(uid)),
            Some(Phase::Starved(_)) => {
                self.change_line(uid);
                self.serve_starved(effects);
            }
            Some(Phase::Reserved) | None => {}
        }
    }

    /// Blocks may have become free: they go to those who wait, and ClusterCIDRs that are to go may.
    pub(super) fn after_release(&mut self, effects: &mut Effects) {
        self.serve_starved(effects);
        let Some(catalogue) = &self.catalogue else { return };
        let terminating =
            catalogue.entries().iter().filter(|it| it.standing == Standing::Terminating);
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
        let SeenClusterCidr { name, uid, standing, spec, plan } = seen;
        let Some(catalogue) = &mut self.catalogue else { return };
        let rank = Rank::of(&name, &plan);
        let pools = self.ledger.add_pools(plan.pools);
        self.counters.add_pools(self.ledger.pools(), pools.clone());
        let ranges: Vec<IpNet> =
            self.ledger.pools()[pools.clone()].iter().map(Pool::cidr).collect();
        let (id, selector) = (catalogue.take_id(), plan.selector);
        catalogue.insert(Entry {
            id,
            uid: uid.clone(),
            name,
            standing,
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
        let Some(entry) = self.catalogue.as_ref().and_then(|it| it.by_uid(uid)) else { return };
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
            self.change_line(&uid);
        }
    }

    /// The Nodes whose claims overlap one of these ranges.
    fn holders(&self, ranges: &[IpNet]) -> BTreeSet<Uid> {
        let claims = ranges.iter().flat_map(|range| self.ledger.overlapping(range));
        let node = |(owner, _)| if let Owner::Node(uid) = owner { Some(uid) } else { None };
        claims.filter_map(node).collect()
    }

    /// These ranges have become pools, or are none any more: counts anew which CIDRs of the Nodes
    /// in them lie in no pool.
    fn find_external(&mut self, ranges: &[IpNet]) {
        for uid in self.holders(ranges) {
            let claim = self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default();
            let inside =
                |cidr: &&IpNet| self.ledger.pools().iter().any(|it| it.indices(cidr).is_some());
            let outside = claim.iter().filter(|cidr| !inside(cidr)).count();
            self.findings.set_external(&uid, outside);
        }
    }
}

fn has(pool: &Pool, cidr: &IpNet) -> bool {
    pool.cidr().contains(cidr)
}

/// Of each family the first pool that has a free block, or the first one when none has. By place.
fn first_with_room(pools: &[Pool]) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::with_capacity(2);
    for (place, pool) in pools.iter().enumerate() {
        let of_family = |before: &&mut usize| pools[**before].family() == pool.family();
        match places.iter_mut().find(of_family) {
            None => places.push(place),
            Some(before) if pools[*before].free() == 0 && pool.free() > 0 => *before = place,
            Some(_) => {}
        }
    }
    places
}

/// Why none of these can serve a Node.
fn why_none<'a>(known: impl Iterator<Item = &'a Entry>) -> Shortage {
    let (mut serving, mut unheld) = (Vec::new(), Vec::new());
    for entry in known {
        match entry.standing {
            Standing::Serving => serving.push(entry),
            Standing::Unheld => unheld.push(entry),
            Standing::Terminating => {}
        }
    }
    match (&serving[..], &unheld[..]) {
        ([], []) => Shortage::NotSelected,
        ([], unheld) => Shortage::Unheld(in_words(unheld)),
        (serving, _) => Shortage::AllFull(in_words(serving)),
    }
}

fn in_words(entries: &[&Entry]) -> String {
    let mut words: Vec<&str> = entries.iter().take(NAMED).map(|entry| &*entry.name).collect();
    let more = format!("{} more", entries.len().saturating_sub(NAMED));
    if entries.len() > NAMED {
        words.push(&more);
    }
    words.join(", ")
}
