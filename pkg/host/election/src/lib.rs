//! Leader election over a `coordination.k8s.io/v1` Lease.
//!
//! Called by the command. [`spawn`] campaigns on a thread of its own; [`Elector::leadership`] tells
//! where the process stands, the [`resilience::Fence`] given to it is open exactly while writes are
//! safe, and a watchdog ends the process when everything else is stuck. The contract, whose rules
//! stand in `RULES.md`:
//!
//! - *One leader.* A candidate takes a lease only when it is free, or when its record did not
//!   change for the record's lease duration by the candidate's own clock; a leader stops earlier
//!   than that, counted from the start of its last successful write. Remote timestamps are never
//!   compared with a local clock.
//! - *Nothing delays a renewal*: own thread, runtime, connection; no throttle, no retry layer.
//! - *Rights end before the lease does*: renew deadline ≤ fence < lease duration, and a process
//!   that neither renewed nor gave up its rights in order is gone before the lease runs out
//!   ([`ElectionConfig`] derives the times).
//! - *Losing is final.* The state becomes [`Leadership::Lost`] and never anything else.
//!
//! The files, pure ones first: `config` (timings), `record` (rules of the record), `term` (state for
//! other threads), `elector` (the loop), `store` (the API server), `thread` (with the watchdog).
//!
//! Controllers that run in every replica use [`ReplicaLeases`] in addition.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod config;
mod elector;
mod record;
mod store;
mod term;
mod thread;

/// Atomics of the term. `tests/memory-orders` compiles it with those of loom.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}

pub use config::{ConfigProblem, ElectionConfig};
pub use store::StoreError;
pub use store::{ReplicaGroup, ReplicaLease, ReplicaLeases};
pub use term::ElectionMetrics;
pub use term::{Leadership, LeaseEvent, Released, Won};
pub use term::{PredecessorAnswer, PredecessorCheck};
pub use thread::{Election, ElectionError, Elector, Exit, Place, spawn};
