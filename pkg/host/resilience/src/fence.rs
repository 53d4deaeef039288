//! [`Fence`]: no write leaves this process once its lease may have run out
//! (`rule:fence-closes-before-the-lease-ends`).
//!
//! The elector is its only writer: it opens the fence from the start of each renewal and closes it
//! when leadership ends. Every client with a fence reads it when a request leaves. Two atomics and
//! two clock readings and no lock, so it holds even when every runtime hangs.
//!
//! [`BootInstant`] counts the time of a suspended machine (`rule:lease-time-counts-suspend`), which
//! `std::time::Instant` does not promise.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::sync::{AtomicU64, Ordering};

const CLOSED: u64 = 0;
const ALWAYS: u64 = u64::MAX;

/// A write was refused because this process does not hold the lease, or may not hold it any more.
/// Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot send a write without the leader lease, which is not held or is about to expire")]
pub struct Fenced;

/// Shared switch for writes. Clones are the same switch.
#[derive(Clone, Debug)]
pub struct Fence(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    /// Nanoseconds since boot at which writes stop, or one of the two constants above.
    boot: AtomicU64,
    /// The end by the wall clock, in nanoseconds since 1970.
    wall: AtomicU64,
    clocks: ReadClocks,
}

/// Both clocks of a machine at one moment.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The clock that goes on while the machine sleeps.
    pub boot: BootInstant,
    /// Nanoseconds since 1970 by the wall clock.
    pub wall: u64,
}

/// Reads both clocks.
pub type ReadClocks = fn() -> ClockReading;

fn clocks_of_the_system() -> ClockReading {
    ClockReading { boot: BootInstant::now(), wall: wall_nanos() }
}

impl Fence {
    /// A fence that never stops a write: for `--leader-elect=false`.
    pub fn always_open() -> Self {
        Self::from_raw(ALWAYS, clocks_of_the_system)
    }

    /// A fence that stops every write until it is opened: the state of a candidate.
    pub fn closed() -> Self {
        Self::closed_by(clocks_of_the_system)
    }

    /// A closed fence on other clocks than those of the system, for tests that set them.
    pub fn closed_by(clocks: ReadClocks) -> Self {
        Self::from_raw(CLOSED, clocks)
    }

    fn from_raw(until: u64, clocks: ReadClocks) -> Self {
        let (boot, wall) = (AtomicU64::new(until), AtomicU64::new(CLOSED));
        Self(Arc::new(Ends { boot, wall, clocks }))
    }

    /// Both clocks of this fence now.
    pub fn read_clocks(&self) -> ClockReading {
        (self.0.clocks)()
    }

    /// Lets writes pass until `length` after `from`, in place of what was set before. Both ends count from
    /// there: a machine may have stood still since (`rule:lease-time-counts-suspend`).
    pub fn open_for(&self, from: ClockReading, length: Duration) {
        // The two marks stay out of reach of a computed moment.
        let until = from.boot.saturating_add(length).as_nanos().clamp(CLOSED + 1, ALWAYS - 1);
        let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        // A reader between the two sees an earlier end.
        self.0.wall.store(from.wall.saturating_add(length), Ordering::Release);
        self.0.boot.store(until, Ordering::Release);
    }

    /// Stops every write from now on.
    pub fn close(&self) {
        self.0.boot.store(CLOSED, Ordering::Release);
    }

    /// Time in which a write may still be sent and carried out: zero when the fence is closed,
    /// [`Duration::MAX`] when it never closes. The lease itself lasts longer, by the margin that
    /// the elector keeps for what is on its way.
    pub fn remaining(&self) -> Duration {
        let ClockReading { boot, wall } = self.read_clocks();
        self.remaining_at(boot, wall)
    }

    /// The wall clock can only take time away: a machine whose clock is set forward may have stood
    /// still (`rule:lease-time-counts-suspend`).
    fn remaining_at(&self, now: BootInstant, wall: u64) -> Duration {
        match self.0.boot.load(Ordering::Acquire) {
            ALWAYS => Duration::MAX,
            CLOSED => Duration::ZERO,
            until => {
                let by_wall = self.0.wall.load(Ordering::Acquire).saturating_sub(wall);
                let by_boot = BootInstant::from_nanos(until).saturating_since(now);
                by_boot.min(Duration::from_nanos(by_wall))
            }
        }
    }

    /// Whether a write may leave now.
    ///
    /// # Errors
    /// The fence is closed; nothing may be sent.
    pub fn check(&self) -> Result<(), Fenced> {
        if self.remaining().is_zero() { Err(Fenced) } else { Ok(()) }
    }
}

/// A moment on `CLOCK_BOOTTIME`, as the time since boot. Comparable only within one boot of one
/// machine.
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

    /// The inverse of [`as_nanos`](Self::as_nanos), for a moment that is kept in an atomic.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }
}

/// Nanoseconds since 1970 by the wall clock.
pub(crate) fn wall_nanos() -> u64 {
    let read = clock_gettime(ClockId::Realtime);
    let (seconds, nanoseconds) = (u64::try_from(read.tv_sec), u64::try_from(read.tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanoseconds.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_fresh_candidate_may_not_write() {
        let fence = Fence::closed();
        assert_eq!(fence.check(), Err(Fenced));
        assert_eq!(fence.remaining(), Duration::ZERO);
    }

    #[test]
    fn without_leader_election_every_write_passes() {
        let fence = Fence::always_open();
        assert_eq!(fence.check(), Ok(()));
        assert_eq!(fence.remaining(), Duration::MAX);
    }

    #[test]
    fn writes_pass_until_the_end_of_the_renewed_time_and_not_after() {
        let fence = Fence::closed();
        fence.open_for(fence.read_clocks(), LONG);
        assert_eq!(fence.check(), Ok(()));

        let after_boot = ClockReading { boot: BootInstant::from_nanos(1), wall: wall_nanos() };
        fence.open_for(after_boot, Duration::from_nanos(1));
        assert_eq!(fence.check(), Err(Fenced));
    }

    #[test]
    fn what_remains_is_counted_from_the_start_of_the_renewal() {
        let fence = Fence::closed();
        let now = fence.read_clocks();
        fence.open_for(now, LONG);
        let left = fence.remaining();
        assert!(left <= LONG && left + Duration::from_secs(60) > LONG, "{left:?}");

        // Opened again for less: the last call counts.
        fence.open_for(now, LONG / 2);
        assert!(fence.remaining() <= LONG / 2);
    }

    /// A hypervisor pauses a machine and sets its wall clock when it goes on.
    #[test]
    fn a_wall_clock_that_was_set_forward_closes_the_fence_and_one_set_back_changes_nothing() {
        const SECOND: u64 = 1_000_000_000;
        let fence = Fence::closed();
        let ClockReading { boot, wall } = fence.read_clocks();
        fence.open_for(ClockReading { boot, wall }, LONG);
        assert_eq!(fence.remaining_at(boot, wall + 3601 * SECOND), Duration::ZERO);
        assert!(fence.remaining_at(boot, wall + 3000 * SECOND) <= Duration::from_secs(601));
        assert_eq!(fence.remaining_at(boot, wall - 3000 * SECOND), LONG);
        assert_eq!(Fence::always_open().remaining_at(boot, u64::MAX), Duration::MAX);

        // It was paused while the renewal was under way.
        fence.open_for(ClockReading { boot, wall: wall - 3601 * SECOND }, LONG);
        assert_eq!(fence.remaining_at(boot, wall), Duration::ZERO);
    }

    #[test]
    fn closing_stops_every_clone_at_once() {
        let fence = Fence::closed();
        let seen_by_a_client = fence.clone();
        fence.open_for(fence.read_clocks(), LONG);
        fence.close();
        assert_eq!(seen_by_a_client.check(), Err(Fenced));
    }

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
