//! [`Timestamp`]: a time that outlives the process, because it is written into the status of an
//! object.

use serde::{Deserialize, Serialize};

/// Seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time so many seconds later.
    #[must_use]
    pub fn plus(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Seconds from this time until `now`; 0 when it lies in the future.
    pub fn age(self, now: Self) -> u64 {
        now.0.saturating_sub(self.0)
    }

    /// Seconds from `now` until this time; 0 when it has passed.
    pub fn left(self, now: Self) -> u64 {
        self.0.saturating_sub(now.0)
    }
}
