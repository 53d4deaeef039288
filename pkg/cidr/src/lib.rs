//! CIDR pools and who holds what of them. Pure: no Kubernetes, no I/O, no clock. The rules stand in
//! `RULES.md`.
//!
//! - [`parse`] and [`canonical`] are the border between text and [`IpNet`].
//! - A [`Pool`] is one cluster CIDR cut into blocks of one node mask. It knows blocks, not owners,
//!   and hands them out next-fit.
//! - A [`Ledger`] knows owners. A *claim* is an owner with a list of CIDRs, of any size, inside or
//!   outside the pools; a block is used while any claim overlaps it. The claims are the one truth
//!   and the pools are derived from them.
//!
//! The verbs are Kubernetes' own: *occupy* takes over what the cluster already holds and is
//! idempotent, *allocate* picks fresh blocks, *release* ends a claim.
//!
//! Time and memory follow the number of claims, never the number of blocks
//! (`rule:cost-follows-claims`): two CIDRs are nested or disjoint, so claims are looked up in an
//! ordered map, and used blocks are kept as runs. There are no locks inside: one task or one mutex
//! owns a ledger, and nothing here waits.

mod claims;
mod ledger;
mod pool;
mod prefix;

use thiserror::Error;

pub use ipnet::IpNet;
pub use ledger::{Allocated, Change, Conflict, Ledger, Occupied};
pub use pool::{Candidate, Pool};
pub use prefix::{Family, ParseError, canonical, parse};

/// A cluster CIDR cannot be cut with the node mask asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PoolError {
    /// A block would be larger than the pool.
    #[error(
        "cannot cut cluster CIDR {cidr} into node CIDRs of /{mask}: the node mask is shorter than \
         the prefix /{}, use one from {} to {max}",
        .cidr.prefix_len(),
        .cidr.prefix_len()
    )]
    MaskShorterThanPrefix {
        /// The cluster CIDR.
        cidr: IpNet,
        /// The node mask.
        mask: u8,
        /// The longest mask of the family.
        max: u8,
    },
    /// An address of the family has fewer bits than the mask.
    #[error(
        "cannot cut cluster CIDR {cidr} into node CIDRs of /{mask}: an {family} mask is at most {}",
        .family.width()
    )]
    MaskTooLong {
        /// The cluster CIDR.
        cidr: IpNet,
        /// The node mask.
        mask: u8,
        /// The family of the cluster CIDR.
        family: Family,
    },
    /// More than 2^max blocks of IPv6, which upstream refuses too.
    #[error(
        "cannot cut an IPv6 cluster CIDR into 2^{bits} node CIDRs: the limit is 2^{max}, use a node \
         mask shorter by {} or raise the limit (at most {})",
        .bits - .max,
        prefix::MAX_BITS
    )]
    TooManyIpv6Bits {
        /// Node mask minus cluster prefix.
        bits: u8,
        /// The most that is allowed.
        max: u8,
    },
}

/// A pool has no free block, so nothing was allocated from any pool
/// (`rule:block-is-used-while-claimed`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "cannot allocate a node CIDR: cluster CIDR {pool} with node mask /{mask} has {}, {used} in use; \
     delete Nodes, or restart with a larger cluster CIDR or a longer node mask",
    count(*.blocks)
)]
pub struct Exhausted {
    /// The first full pool, in pool order.
    pub pool: IpNet,
    /// The node mask of the pool.
    pub mask: u8,
    /// How many blocks it has.
    pub blocks: u128,
    /// How many of them are used.
    pub used: u128,
}

fn count(blocks: u128) -> String {
    if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") }
}
