//! [`Snapshot`]: what an allocator has at one instant, as metrics show it.

use std::sync::Arc;

use cidr::IpNet;

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

/// Whatever can be counted at any time.
pub(crate) trait Counted: Send + Sync {
    /// Counts everything.
    fn count(&self) -> Snapshot;
}
