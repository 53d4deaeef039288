//! What is counted since the start, and how full each pool is.

use std::ops::Range;

use cidr::{Change, Pool};

use crate::pressure::Pressure;

/// One pool's numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PoolCounters {
    pub(super) occupied: u128,
    pub(super) freed: u128,
    pub(super) pressure: Pressure,
}

#[derive(Debug)]
pub(super) struct Counters {
    /// In the order of the pools.
    pub(super) pools: Vec<PoolCounters>,
    /// Nodes that somebody else gave CIDRs to while they waited for ours.
    pub(super) foreign: u64,
}

impl Counters {
    pub(super) fn new(pools: usize) -> Self {
        Self { pools: vec![PoolCounters::default(); pools], foreign: 0 }
    }

    /// Pools were added at these places. What is used of them already counts, and is no news.
    pub(super) fn add_pools(&mut self, pools: &[Pool], places: Range<usize>) {
        self.pools.extend(pools.iter().skip(places.start).map(|pool| {
            let mut pressure = Pressure::default();
            pressure.update(pool.used(), pool.blocks());
            PoolCounters { occupied: pool.used(), freed: 0, pressure }
        }));
    }

    /// The pools at these places were taken away.
    pub(super) fn remove_pools(&mut self, places: Range<usize>) {
        self.pools.drain(places);
    }

    pub(super) fn count(&mut self, change: &Change) {
        let changes = change.occupied.iter().zip(&change.freed);
        for (pool, (occupied, freed)) in self.pools.iter_mut().zip(changes) {
            pool.occupied += occupied;
            pool.freed += freed;
        }
    }

    /// Pools that have just crossed a warning line upwards, with the line.
    pub(super) fn crossed<'a>(&mut self, pools: &'a [Pool]) -> Vec<(&'a Pool, u8)> {
        let each = pools.iter().zip(&mut self.pools);
        each.filter_map(|(pool, counters)| {
            Some((pool, counters.pressure.update(pool.used(), pool.blocks())?))
        })
        .collect()
    }

    /// Blocks were freed: pools may have fallen below a line.
    pub(super) fn relieve(&mut self, pools: &[Pool]) {
        for (pool, counters) in pools.iter().zip(&mut self.pools) {
            counters.pressure.relieve(pool.used(), pool.blocks());
        }
    }
}
