//! Time since boot, suspend included. The elector stamps renewals with it and the fence compares
//! them: a process that was stopped or a machine that slept must find its lease old on waking
//! (`rule:lease-time-counts-suspend`), which `CLOCK_MONOTONIC`, and with it `std::time::Instant`,
//! does not promise.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment on `CLOCK_BOOTTIME`, as the time since boot. Comparable within one boot of one machine
/// only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// Reads the clock.
    pub fn now() -> Self {
        let read = clock_gettime(ClockId::Boottime);
        // The kernel never reports a negative time since boot, nor nanoseconds of a second or more.
        let seconds = u64::try_from(read.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(read.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanoseconds))
    }

    /// Time from `earlier` to `self`; zero if `earlier` is the later one.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Time from `self` until now.
    pub fn elapsed(self) -> Duration {
        Self::now().saturating_since(self)
    }

    /// The moment `length` after this one.
    #[must_use]
    pub fn saturating_add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(length))
    }

    /// Nanoseconds since boot: 584 years fit.
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The moment `nanos` after boot; the way back from [`as_nanos`](Self::as_nanos), for keeping
    /// one in an atomic.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }
}

/// Nanoseconds since 1970, as the machine believes.
pub(crate) fn wall_nanos() -> u64 {
    let read = clock_gettime(ClockId::Realtime);
    let (seconds, nanoseconds) = (u64::try_from(read.tv_sec), u64::try_from(read.tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanoseconds.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_moves_forward_and_survives_a_trip_through_an_atomic() {
        let before = BootInstant::now();
        let after = before.saturating_add(Duration::from_nanos(1));
        assert!(after > before);
        assert!(BootInstant::now() >= before);
        assert_eq!(BootInstant::from_nanos(before.as_nanos()), before);
        assert_eq!(before.saturating_since(after), Duration::ZERO);
    }
}
