//! What the operations of a ledger report back to the controller: plain values for its metrics,
//! events and logs.

use ipnet::IpNet;

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
    /// Who else holds addresses of it.
    pub other: O,
    /// The CIDR of the other.
    pub theirs: IpNet,
}
