//! [`Hold`]: until when no pod CIDR is given out (`rule:second-allocator-is-told`).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Until when no pod CIDR is given out. Clones are the same, and one outlives the runs of the
/// controller: a controller that is started again holds what the one before it held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hold(Arc<Mutex<Option<Instant>>>);

impl Hold {
    /// Holds until that moment, in place of what was set before.
    pub(crate) fn set(&self, until: Instant) {
        *self.0.lock() = Some(until);
    }

    /// For how long from now on nothing is given out.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let left = (*self.0.lock())?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}
