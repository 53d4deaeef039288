//! What keeps a failure small: how long to wait after it, how seldom to log it, and how a panic is
//! contained. No clock and no task of its own: callers pass the time in, so a paused test clock is
//! enough.
//!
//! | file | holds | used by |
//! |---|---|---|
//! | `delay.rs` | [`Backoff`]: the wait after the n-th failure in a row | work queues, the supervisor |
//! | `series.rs` | [`Series`]: a backoff that counts its own failures | informers, readers of files |
//! | `bucket.rs` | [`Bucket`]: a rate that a cloud's refusals slow down | callers of clouds |
//! | `log_gate.rs` | [`LogGate`], [`KeyedLogGate`]: one line per interval, the rest counted | whoever logs failures |
//! | `panics.rs` | [`panics::contain`]: a panic is an error | work queues, the manager |

mod bucket;
mod delay;
mod log_gate;
pub mod panics;
mod series;

pub use bucket::{Bucket, Rate};
pub use delay::{Backoff, Jitter};
pub use log_gate::{KeyedLogGate, LogGate};
pub use series::Series;
