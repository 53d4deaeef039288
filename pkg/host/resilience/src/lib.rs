//! What keeps a failure small: how long to wait after it, how seldom to log it, how a panic is
//! contained, and that nothing is written without the lease. No task of its own; but for the fence
//! callers pass the time in, so a paused test clock is enough.
//!
//! | file | holds | used by |
//! |---|---|---|
//! | `delay.rs` | [`Backoff`]: the wait after the n-th failure in a row | work queues, the supervisor |
//! | `series.rs` | [`Series`]: a backoff that counts its own failures | informers, readers of files |
//! | `bucket.rs` | [`Bucket`]: a rate that a cloud's refusals slow down | callers of clouds |
//! | `log_gate.rs` | [`LogGate`], [`KeyedLogGate`]: one line per interval, the rest counted | whoever logs failures |
//! | `panics.rs` | [`panics::contain`]: a panic is an error | work queues, the manager |
//! | `fence.rs` | [`Fence`]: no write without the lease | clients of the API server and of clouds |
//! | `boot_clock.rs` | [`BootInstant`]: the clock that the fence is read by | the elector |

mod boot_clock;
mod bucket;
mod delay;
mod fence;
mod log_gate;
pub mod panics;
mod series;

pub use boot_clock::BootInstant;
pub use bucket::{Bucket, Rate};
pub use delay::{Backoff, Jitter};
pub use fence::{Fence, Fenced};
pub use log_gate::{KeyedLogGate, LogGate};
pub use series::Series;
