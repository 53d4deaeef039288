//! [`Ledger`]: the claims of all owners, and the pools derived from them. The node-ipam controller owns one
//! ledger; its owners are Node UIDs and service ranges.
//!
//! Contract:
//! - A block is used exactly while a claim overlaps it, whoever made the claim and in whatever
//!   order claims come and go. An allocation therefore never overlaps a live claim
//!   (`rule:block-is-used-while-claimed`).
//! - An owner has at most one claim, and retries get the same one (`rule:block-is-used-while-claimed`).
//! - An allocation takes a block from every pool it is to serve from, or changes nothing
//!   (`rule:block-is-used-while-claimed`).
//! - Pools come and go, the claims stay (`rule:claims-outlive-pools`).
//! - Any CIDR can be claimed, outside the pools or in conflict with others; the caller is told
//!   (`rule:claims-outlive-pools`).
//! - CIDRs meet pools by family and address (`rule:block-is-used-while-claimed`).

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::{Deref, Range};

use ipnet::IpNet;

use super::claims::{Claimed, Claims, OneOrMore};
use super::prefix::Prefix;
use super::{Candidate, Exhausted, Pool};

/// The claims of all owners over a list of pools.
///
/// Invariant: `claims` holds exactly the CIDRs of `by_owner`, and a block of a pool is used exactly
/// when it overlaps one of them.
#[derive(Clone, Debug)]
pub struct Ledger<O> {
    pools: Vec<Pool>,
    by_owner: HashMap<O, OneOrMore<IpNet>>,
    claims: Claims<O>,
}

impl<O: Clone + Eq + Hash> Ledger<O> {
    /// A ledger without claims. Blocks already used in a pool given here are forgotten.
    pub fn new(pools: Vec<Pool>) -> Self {
        let mut pools = pools;
        for pool in &mut pools {
            pool.release(&pool.cidr());
        }
        Self { pools, by_owner: HashMap::new(), claims: Claims::new() }
    }

    /// The pools, in the order given.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// How many owners have a claim.
    pub fn len(&self) -> usize {
        self.by_owner.len()
    }

    /// True when there is no claim.
    pub fn is_empty(&self) -> bool {
        self.by_owner.is_empty()
    }

    /// The CIDRs that an owner claims, in the order in which they were claimed.
    pub fn claim(&self, owner: &O) -> Option<&[IpNet]> {
        self.by_owner.get(owner).map(Deref::deref)
    }

    /// Every claimed CIDR that overlaps `cidr`, with its owner: wider ones first, then by address.
    pub fn overlapping(&self, cidr: &IpNet) -> Vec<(O, IpNet)> {
        let claimed = self.claims_overlapping(cidr);
        claimed.flat_map(|c| c.owners.iter().map(move |owner| (owner.clone(), c.net))).collect()
    }

    /// Whether the claim of another owner overlaps the claim of this owner.
    pub fn is_contested(&self, owner: &O) -> bool {
        self.claim(owner).unwrap_or_default().iter().any(|cidr| {
            let mut overlapping = self.claims_overlapping(cidr);
            overlapping.any(|claimed| claimed.owners.iter().any(|other| other != owner))
        })
    }

    /// Makes `cidrs` the whole claim of an owner, whatever it held before; an empty list ends the
    /// claim. Doing it again changes nothing. Never moves a cursor.
    pub fn occupy(&mut self, owner: &O, cidrs: &[IpNet]) -> Occupied<O> {
        let cidrs: Vec<IpNet> = cidrs.iter().map(IpNet::trunc).collect();
        let external = cidrs.iter().filter(|cidr| self.is_external(cidr)).copied().collect();
        let conflicts = cidrs.iter().flat_map(|cidr| self.conflicts(owner, cidr)).collect();
        let mut change = self.no_change();
        if self.claim(owner).unwrap_or_default() != cidrs {
            self.replace(owner, cidrs, &mut change);
        }
        Occupied { external, conflicts, change }
    }

    /// Claims one free block of every pool for an owner. An owner that already has a claim keeps
    /// it, and gets it back unchanged. On error nothing changed, cursors included.
    pub fn allocate(&mut self, owner: &O) -> Result<Allocated, Exhausted> {
        let all: Vec<usize> = (0..self.pools.len()).collect();
        self.allocate_from(owner, &all)
    }

    /// Allocates a block of each of these pools, in this order, by their indices in [`Ledger::pools`]; an index past
    /// the last pool is ignored.
    pub fn allocate_from(&mut self, owner: &O, places: &[usize]) -> Result<Allocated, Exhausted> {
        let mut change = self.no_change();
        if let Some(cidrs) = self.claim(owner) {
            return Ok(Allocated { cidrs: cidrs.to_vec(), skipped: Vec::new(), change });
        }
        let chosen = self.choose(places, &mut change)?;
        let cidrs: Vec<IpNet> = chosen.iter().map(|(_, candidate)| candidate.block).collect();
        let skipped = chosen.iter().map(|(_, candidate)| candidate.skipped).collect();
        for (place, candidate) in &chosen {
            self.pools[*place].advance(candidate.index);
        }
        self.replace(owner, cidrs.clone(), &mut change);
        Ok(Allocated { cidrs, skipped, change })
    }

    /// Adds pools behind the others; their blocks that claims overlap are used from the start.
    /// Returns their places.
    pub fn add_pools(&mut self, pools: Vec<Pool>) -> Range<usize> {
        let first = self.pools.len();
        for mut pool in pools {
            pool.release(&pool.cidr());
            for claimed in self.claims_overlapping(&pool.cidr()) {
                pool.occupy(&claimed.net);
            }
            self.pools.push(pool);
        }
        first..self.pools.len()
    }

    /// Takes the pools at these places away; those behind them move up. No claim ends by it.
    pub fn remove_pools(&mut self, places: Range<usize>) {
        let end = places.end.min(self.pools.len());
        self.pools.drain(places.start.min(end)..end);
    }

    /// Whether an owner that satisfies `by` has a claim that overlaps `cidr`.
    pub fn is_held(&self, cidr: &IpNet, by: impl Fn(&O) -> bool) -> bool {
        self.claims_overlapping(cidr).any(|claimed| claimed.owners.iter().any(&by))
    }

    /// Ends the claim of an owner. Blocks that other claims overlap stay used.
    pub fn release(&mut self, owner: &O) -> Change {
        let mut change = self.no_change();
        self.replace(owner, Vec::new(), &mut change);
        change
    }

    fn claims_overlapping(&self, cidr: &IpNet) -> impl Iterator<Item = Claimed<'_, O>> {
        let prefix = Prefix::of(cidr);
        self.claims.around(prefix).chain(self.claims.within(prefix))
    }

    /// Marks one free block of each of these pools, or of none.
    ///
    /// One after the other, each marked in every pool, so that the blocks are disjoint even when
    /// the pools are not.
    fn choose(
        &mut self,
        places: &[usize],
        change: &mut Change,
    ) -> Result<Vec<(usize, Candidate)>, Exhausted> {
        let mut chosen: Vec<(usize, Candidate)> = Vec::with_capacity(places.len());
        let pools = self.pools.len();
        for place in places.iter().copied().filter(|place| *place < pools) {
            let Some(candidate) = self.pools[place].peek() else {
                let full = self.pools[place].exhausted();
                for (_, candidate) in &chosen {
                    self.unmark(&candidate.block, change);
                }
                return Err(full);
            };
            self.mark(&candidate.block, change);
            chosen.push((place, candidate));
        }
        Ok(chosen)
    }

    /// Makes `cidrs` the claim of an owner. The new comes before the old goes, so that a block in
    /// both does not change state.
    fn replace(&mut self, owner: &O, cidrs: Vec<IpNet>, change: &mut Change) {
        for cidr in &cidrs {
            self.claims.insert(*cidr, owner);
            self.mark(cidr, change);
        }
        let old = if cidrs.is_empty() {
            self.by_owner.remove(owner)
        } else {
            self.by_owner.insert(owner.clone(), cidrs.clone().into())
        };
        let mut gone = old.unwrap_or_default().into_vec();
        gone.retain(|cidr| !cidrs.contains(cidr));
        for cidr in &gone {
            self.claims.remove(cidr, owner);
        }
        for cidr in &gone {
            self.unmark(cidr, change);
        }
    }

    fn mark(&mut self, cidr: &IpNet, change: &mut Change) {
        for (pool, occupied) in self.pools.iter_mut().zip(&mut change.occupied) {
            *occupied += pool.occupy(cidr);
        }
    }

    /// Frees the blocks a CIDR overlaps, except those that a claim overlaps. A block is larger
    /// than a small claim, so the neighbours inside the same block count as well.
    fn unmark(&mut self, cidr: &IpNet, change: &mut Change) {
        for (pool, freed) in self.pools.iter_mut().zip(&mut change.freed) {
            let Some(blocks) = pool.whole_blocks(cidr) else { continue };
            if self.claims.around(blocks).next().is_some() {
                continue;
            }
            let released = pool.release(cidr);
            let kept: u128 = self.claims.within(blocks).map(|c| pool.occupy(&c.net)).sum();
            *freed += released - kept;
        }
    }

    fn is_external(&self, cidr: &IpNet) -> bool {
        self.pools.iter().all(|pool| pool.indices(cidr).is_none())
    }

    fn conflicts(&self, owner: &O, mine: &IpNet) -> Vec<Conflict<O>> {
        let others = self.overlapping(mine).into_iter().filter(|(other, _)| other != owner);
        others.map(|(other, theirs)| Conflict { mine: *mine, other, theirs }).collect()
    }

    fn no_change(&self) -> Change {
        Change::none(self.pools.len())
    }
}

/// Blocks that changed state, per pool in pool order. A block that was used before and is used
/// after is in neither list, which keeps counters honest
/// (`rule:block-is-used-while-claimed`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Blocks that became used.
    pub occupied: Vec<u128>,
    /// Blocks that became free.
    pub freed: Vec<u128>,
}

impl Change {
    pub(crate) fn none(pools: usize) -> Self {
        Self { occupied: vec![0; pools], freed: vec![0; pools] }
    }
}

/// The result of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// One block per pool that served, in pool order; or the claim the owner already had.
    pub cidrs: Vec<IpNet>,
    /// Used blocks skipped on the way to each block, in pool order. Empty when the owner already
    /// had a claim, since nothing was searched.
    pub skipped: Vec<u128>,
    /// Blocks that became used.
    pub change: Change,
}

/// The result of taking over what an owner holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupied<O> {
    /// CIDRs of this claim that overlap no pool. They are claimed all the same.
    pub external: Vec<IpNet>,
    /// Claims of others that overlap this one. Reported on every call while the overlap lasts.
    pub conflicts: Vec<Conflict<O>>,
    /// Blocks that changed state.
    pub change: Change,
}

/// Two live claims that overlap. Both stay: the blocks are used until both are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict<O> {
    /// The CIDR of the owner asked for.
    pub mine: IpNet,
    /// The owner of the overlapping claim.
    pub other: O,
    /// The CIDR of the other.
    pub theirs: IpNet,
}

#[cfg(test)]
mod tests;
