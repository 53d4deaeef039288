//! Building blocks that keep a failure small: waits after failures, rate limits, log gates, contained panics, and the
//! fence that stops writes without the lease. No task of its own; except for the fence, callers pass
//! the time in, so tests use a paused clock.
//!
//! | file | holds | used by |
//! |---|---|---|
//! | `backoff.rs` | [`Backoff`], [`Series`]: waits after failures | work queues, informers, the supervisor |
//! | `token_bucket.rs` | [`TokenBucket`]: a rate limit | clients, writers of statuses, events |
//! | `log_gate.rs` | [`LogGate`], [`KeyedLogGate`]: one line per interval, the rest counted | all that log failures |
//! | `panics.rs` | [`panics::contain`]: turns a panic into an error | work queues, the manager |
//! | `fence.rs` | [`Fence`]: no write without the lease; [`BootInstant`]: its clock | election, clients |

mod backoff;
mod fence;
mod log_gate;
pub mod panics;
mod token_bucket;

pub use backoff::{Backoff, Jitter, Series};
pub use fence::{BootInstant, Fence, Fenced};
pub use log_gate::{KeyedLogGate, LogGate};
pub use token_bucket::{Rate, TokenBucket};
