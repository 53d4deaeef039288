//! The allocator as metrics see it.

use std::sync::Arc;

use cidr::IpNet;

use super::{Allocator, Phase};

/// One pool in numbers; `usage`, the counters and the warning line are what dashboards show.
#[derive(Clone, Debug)]
pub(crate) struct PoolState {
    /// The cluster CIDR.
    pub(crate) cidr: IpNet,
    /// The name of the ClusterCIDR that it is of, if it is of one.
    pub(crate) object: Option<Arc<str>>,
    /// How many blocks the pool has.
    pub(crate) blocks: u128,
    /// Blocks that some claim overlaps.
    pub(crate) used: u128,
    /// Blocks that became used since start.
    pub(crate) occupied_total: u128,
    /// Blocks that became free since start.
    pub(crate) freed_total: u128,
    /// The highest warning line that the pool stands at: 0, 80 or 95.
    pub(crate) pressure: u8,
}

/// All counts at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// In the order of the flags.
    pub(crate) pools: Vec<PoolState>,
    /// Nodes that are to be given blocks.
    pub(crate) pending: usize,
    /// Nodes that wait for a free block.
    pub(crate) starved: usize,
    /// Nodes with blocks that they do not show yet.
    pub(crate) reserved: usize,
    /// Nodes with a PATCH of unknown outcome.
    pub(crate) unresolved: usize,
    /// Pairs of live Nodes whose CIDRs overlap.
    pub(crate) conflicts: usize,
    /// CIDRs of live Nodes that lie outside all pools, or cannot be parsed.
    pub(crate) external: usize,
    /// CIDRs of live Nodes that overlap a service range.
    pub(crate) in_services: usize,
    /// Nodes that are gone and whose blocks nobody gets yet.
    pub(crate) resting: usize,
    /// Nodes that somebody else gave CIDRs to while they waited for ours.
    pub(crate) foreign_total: u64,
}

impl Allocator {
    /// Counts everything.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let names = self.names_of_pools();
        let pools = self.ledger.pools().iter().zip(&self.counters.pools).zip(names);
        let mut snapshot = Snapshot {
            pools: pools
                .map(|((pool, counters), object)| PoolState {
                    cidr: pool.cidr(),
                    object,
                    blocks: pool.blocks(),
                    used: pool.used(),
                    occupied_total: counters.occupied,
                    freed_total: counters.freed,
                    pressure: counters.pressure.percent(),
                })
                .collect(),
            conflicts: self.findings.conflicts(),
            external: self.findings.external(),
            in_services: self.findings.in_services(),
            resting: self.rests.len(),
            foreign_total: self.counters.foreign,
            ..Snapshot::default()
        };
        for node in self.unassigned.values() {
            match node.phase {
                Phase::Pending => snapshot.pending += 1,
                Phase::Starved(_) => snapshot.starved += 1,
                Phase::Reserved => snapshot.reserved += 1,
            }
            snapshot.unresolved += usize::from(node.outcome().is_open());
        }
        snapshot
    }

    /// By the places of the pools.
    fn names_of_pools(&self) -> Vec<Option<Arc<str>>> {
        let mut names = vec![None; self.ledger.pools().len()];
        for entry in self.catalogue.iter().flat_map(|it| it.entries()) {
            names[entry.pools.clone()].fill(Some(entry.name.clone()));
        }
        names
    }
}
