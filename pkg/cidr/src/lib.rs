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
mod error;
mod ledger;
mod parse;
mod pool;
mod prefix;

pub use error::{Exhausted, ParseError, PoolError};
pub use ipnet::IpNet;
pub use ledger::Ledger;
pub use ledger::{Allocated, Change, Conflict, Occupied};
pub use parse::{canonical, parse};
pub use pool::{Candidate, Pool};
pub use prefix::Family;
