//! The client-side rate limit: one token bucket per controller and purpose, what it tells the log,
//! and its metrics. The gate layer of `call` waits here.

mod advice;
mod bucket;
mod line;
pub(crate) mod log;
mod metrics;
mod refusals;

pub use self::metrics::ThrottleMetrics;
pub use bucket::{Throttle, ThrottleError};
