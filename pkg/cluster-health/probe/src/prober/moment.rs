//! The time, as probes and what is made of them tell it.

use health::Moment;
use jiff::Timestamp;
use tokio::time::Instant;

/// This moment on both clocks; a test that pauses tokio's time pauses the monotonic one.
pub fn now() -> Moment {
    Moment { monotonic: Instant::now().into_std(), wall: Timestamp::now() }
}
