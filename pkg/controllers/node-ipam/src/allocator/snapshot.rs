//! The allocator as metrics see it.

use cidr::IpNet;

use super::Allocator;
use super::open::Phase;

/// One pool in numbers; `usage`, the counters and the warning line are what dashboards show.
#[derive(Clone, Debug)]
pub struct PoolState {
    /// The cluster CIDR.
    pub cidr: IpNet,
    /// How many blocks the pool has.
    pub blocks: u128,
    /// Blocks that some claim overlaps.
    pub used: u128,
    /// Blocks that became used since start.
    pub occupied_total: u128,
    /// Blocks that became free since start.
    pub freed_total: u128,
    /// The highest warning line that the pool stands at: 0, 80 or 95.
    pub pressure: u8,
}

/// All counts at one instant.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// In the order of the flags.
    pub pools: Vec<PoolState>,
    /// Nodes that are to be given blocks.
    pub pending: usize,
    /// Nodes that wait for a free block.
    pub starved: usize,
    /// Nodes with blocks that they do not show yet.
    pub reserved: usize,
    /// Nodes with a PATCH of unknown outcome.
    pub unresolved: usize,
    /// Pairs of live Nodes whose CIDRs overlap.
    pub conflicts: usize,
    /// CIDRs of live Nodes that lie outside all pools, or are none.
    pub external: usize,
    /// Nodes that somebody else gave CIDRs to while they waited for ours.
    pub foreign_total: u64,
}

impl Allocator {
    /// Counts everything.
    pub fn snapshot(&self) -> Snapshot {
        let pools = self.ledger.pools().iter().zip(&self.pressure).enumerate();
        let mut snapshot = Snapshot {
            pools: pools
                .map(|(index, (pool, pressure))| PoolState {
                    cidr: pool.cidr(),
                    blocks: pool.blocks(),
                    used: pool.used(),
                    occupied_total: self.occupied_total[index],
                    freed_total: self.freed_total[index],
                    pressure: pressure.percent(),
                })
                .collect(),
            conflicts: self.conflicts.len(),
            external: self.external.values().sum(),
            foreign_total: self.foreign,
            ..Snapshot::default()
        };
        for open in self.open.values() {
            match open.phase {
                Phase::Pending => snapshot.pending += 1,
                Phase::Starved { .. } => snapshot.starved += 1,
                Phase::Reserved => snapshot.reserved += 1,
            }
            snapshot.unresolved += usize::from(open.unresolved);
        }
        snapshot
    }
}
