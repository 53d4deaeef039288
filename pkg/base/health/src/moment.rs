//! [`Moment`]: a time on both clocks.

use std::time::Instant;

use jiff::Timestamp;

/// One point in time on the monotonic clock, by which everything is decided, and on the wall clock,
/// which is only ever shown (`rule:decisions-use-the-monotonic-clock`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// For intervals and deadlines.
    pub monotonic: Instant,
    /// For conditions, messages and metrics.
    pub wall: Timestamp,
}
