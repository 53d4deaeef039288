//! [`CountedLedger`]: the claims of an allocator, by owner, with the counters that metrics show and the
//! blocks that no Node gets for a time. All allocators keep their claims in it.

use std::collections::BTreeSet;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;

use cidr::{Allocated, Change, Exhausted, IpNet, Ledger, Occupied, Pool};
use tokio::time::Instant;

use crate::pressure::{PoolState, Pressure};

/// A Node's UID.
pub(crate) type Uid = Arc<str>;

/// The owner of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    /// A service range; never released.
    Service(IpNet),
    /// A range that no Node may get; never released.
    Excluded(IpNet),
    /// A block that the cloud refused to route (`rule:refused-block-is-changed`).
    Refused(IpNet),
    /// A Node that is gone; released after the reuse delay (`rule:freed-blocks-rest`).
    Resting(Uid),
    /// Alias ranges of this Node's VM that differ from the Node's pod CIDRs.
    Aliases(Uid),
    /// A live Node, by UID and never by name: a name may be used again.
    Node(Uid),
}

/// Counters of one pool since the start.
#[derive(Clone, Copy, Debug, Default)]
struct PoolCounters {
    occupied: u128,
    freed: u128,
    pressure: Pressure,
}

/// Claims on pools. It is read like a [`Ledger`]; every change is counted.
#[derive(Clone, Debug)]
pub(crate) struct CountedLedger {
    ledger: Ledger<Owner>,
    /// In the order of the pools.
    counters: Vec<PoolCounters>,
    /// Claims of no live Node, with the time at which each is released.
    set_aside: BTreeSet<(Instant, Owner)>,
    /// How long the blocks of a deleted Node stay unused; zero for not at all.
    reuse_delay: Duration,
    /// The shortest time for which claims are set aside; `None` where they never are.
    shortest_rest: Option<Duration>,
}

impl Deref for CountedLedger {
    type Target = Ledger<Owner>;

    fn deref(&self) -> &Self::Target {
        &self.ledger
    }
}

impl CountedLedger {
    pub(crate) fn new(pools: Vec<Pool>) -> Self {
        Self {
            counters: vec![PoolCounters::default(); pools.len()],
            ledger: Ledger::new(pools),
            set_aside: BTreeSet::new(),
            reuse_delay: Duration::ZERO,
            shortest_rest: None,
        }
    }

    /// Keeps the blocks of Nodes that are deleted from now on unused for so long.
    pub(crate) fn set_reuse_delay(&mut self, delay: Duration) {
        self.reuse_delay = delay;
        if !delay.is_zero() {
            self.expect_set_aside(delay);
        }
    }

    /// Claims may be set aside for this time, which is not zero.
    pub(crate) fn expect_set_aside(&mut self, time: Duration) {
        self.shortest_rest = Some(self.shortest_rest.map_or(time, |shortest| shortest.min(time)));
    }

    /// Makes `cidrs` the claim of an owner, in place of its earlier claim.
    pub(crate) fn occupy(&mut self, owner: &Owner, cidrs: &[IpNet]) -> Occupied<Owner> {
        let occupied = self.ledger.occupy(owner, cidrs);
        self.count(&occupied.change);
        occupied
    }

    /// Takes one free block of each pool at these places, or none.
    ///
    /// # Errors
    /// A pool is full.
    pub(crate) fn allocate_from(
        &mut self,
        owner: &Owner,
        places: &[usize],
    ) -> Result<Allocated, Exhausted> {
        let allocated = self.ledger.allocate_from(owner, places)?;
        self.count(&allocated.change);
        Ok(allocated)
    }

    /// Ends the claim of an owner.
    pub(crate) fn release(&mut self, owner: &Owner) {
        let change = self.ledger.release(owner);
        self.count(&change);
        for (pool, counters) in self.ledger.pools().iter().zip(&mut self.counters) {
            counters.pressure.relieve(pool.used(), pool.blocks());
        }
    }

    /// Adds pools; the result is their places. Their used blocks count as occupied, and cause no
    /// warning.
    pub(crate) fn add_pools(&mut self, pools: Vec<Pool>) -> Range<usize> {
        let places = self.ledger.add_pools(pools);
        self.counters.extend(self.ledger.pools()[places.clone()].iter().map(|pool| {
            let mut pressure = Pressure::default();
            pressure.update(pool.used(), pool.blocks());
            PoolCounters { occupied: pool.used(), freed: 0, pressure }
        }));
        places
    }

    /// Removes the pools at these places; later ones move up.
    pub(crate) fn remove_pools(&mut self, places: Range<usize>) {
        self.ledger.remove_pools(places.clone());
        self.counters.drain(places);
    }

    fn count(&mut self, change: &Change) {
        let changes = change.occupied.iter().zip(&change.freed);
        for (pool, (occupied, freed)) in self.counters.iter_mut().zip(changes) {
            pool.occupied += occupied;
            pool.freed += freed;
        }
    }

    /// Places of the pools that have crossed a warning line upwards since the last call, with the line.
    pub(crate) fn crossed(&mut self) -> Vec<(usize, u8)> {
        let each = self.ledger.pools().iter().zip(&mut self.counters).enumerate();
        each.filter_map(|(place, (pool, counters))| {
            Some((place, counters.pressure.update(pool.used(), pool.blocks())?))
        })
        .collect()
    }

    /// Gives these ranges to no Node until then.
    pub(crate) fn set_aside(&mut self, owner: Owner, ranges: &[IpNet], until: Instant) {
        self.occupy(&owner, ranges);
        self.set_aside.insert((until, owner));
    }

    /// Keeps the claim of a Node that is gone unused for the reuse delay; the caller releases
    /// the Node's own claim afterwards.
    pub(crate) fn rest(&mut self, uid: &Uid, now: Instant) {
        let claim = self.claim(&Owner::Node(uid.clone())).unwrap_or_default().to_vec();
        if !self.reuse_delay.is_zero() && !claim.is_empty() {
            self.set_aside(Owner::Resting(uid.clone()), &claim, now + self.reuse_delay);
        }
    }

    /// When to call [`Self::end_rest`] next; `None` for never.
    pub(crate) fn next_rested(&self, now: Instant) -> Option<Instant> {
        // What is set aside from now on comes no sooner.
        let soonest = now + self.shortest_rest?;
        Some(self.set_aside.first().map_or(soonest, |(until, _)| soonest.min(*until)))
    }

    /// Releases the oldest claim that was set aside, if its time has come; whether one was released.
    pub(crate) fn end_rest(&mut self, now: Instant) -> bool {
        let is_due = self.set_aside.first().is_some_and(|(until, _)| *until <= now);
        let due = if is_due { self.set_aside.pop_first() } else { None };
        due.map(|(_, owner)| self.release(&owner)).is_some()
    }

    /// Deleted Nodes whose blocks no Node gets yet.
    pub(crate) fn resting(&self) -> usize {
        let is_resting = |owner: &Owner| matches!(owner, Owner::Resting(_));
        self.set_aside.iter().filter(|(_, owner)| is_resting(owner)).count()
    }

    /// Their pod CIDRs, in order of address.
    pub(crate) fn resting_cidrs(&self) -> Vec<IpNet> {
        let is_resting = |owner: &&Owner| matches!(owner, Owner::Resting(_));
        let owners = self.set_aside.iter().map(|(_, owner)| owner).filter(is_resting);
        let mut cidrs: Vec<IpNet> =
            owners.flat_map(|owner| self.claim(owner).unwrap_or_default()).copied().collect();
        cidrs.sort_unstable();
        cidrs
    }

    /// The pools in numbers, without the names and states of their ClusterCIDRs.
    pub(crate) fn pool_states(&self) -> Vec<PoolState> {
        let pools = self.ledger.pools().iter().zip(&self.counters);
        let state = |(pool, counters): (&Pool, &PoolCounters)| PoolState {
            cidr: pool.cidr(),
            object: None,
            state: "",
            mask: pool.mask(),
            blocks: pool.blocks(),
            used: pool.used(),
            occupied_total: counters.occupied,
            freed_total: counters.freed,
            pressure: counters.pressure.percent(),
        };
        pools.map(state).collect()
    }
}
