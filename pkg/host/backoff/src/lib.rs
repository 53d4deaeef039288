//! How long to wait after a failure, and how seldom to say so. No clock and no task of its own:
//! callers pass the time in, so a paused test clock is enough.
//!
//! | file | holds | used by |
//! |---|---|---|
//! | `delay.rs` | [`Backoff`]: the wait after the n-th failure in a row | work queues, the supervisor |
//! | `series.rs` | [`Series`]: a backoff that counts its own failures | informers, readers of files |
//! | `bucket.rs` | [`Bucket`]: a rate that a cloud's refusals slow down | callers of clouds |
//! | `log_gate.rs` | [`LogGate`], [`KeyedLogGate`]: one line per interval, the rest counted | whoever logs failures |

mod bucket;
mod delay;
mod log_gate;
mod series;

pub use bucket::{Bucket, Rate};
pub use delay::{Backoff, Jitter};
pub use log_gate::{KeyedLogGate, LogGate};
pub use series::Series;
