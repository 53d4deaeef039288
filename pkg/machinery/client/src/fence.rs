//! The leader's fence: no write leaves this process once its lease may have run out (`host.md` 3.3,
//! 3.4 item 4).
//!
//! The elector is its only writer: it opens the fence for `lease duration - 2 s`, or for the renew
//! deadline when that is longer, from the start of each renewal and closes it when leadership ends.
//! Every client with a fence reads it when a request leaves. One atomic and one clock reading;
//! nothing to lock, so it holds with every runtime wedged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::boot_clock::BootInstant;

const CLOSED: u64 = 0;
const ALWAYS: u64 = u64::MAX;

/// A write was refused because this process does not hold the lease, or may not hold it any more.
/// Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot send a write without the leader lease, which is not held or is about to expire")]
pub struct Fenced;

/// Shared switch for writes. Clones are the same switch.
#[derive(Clone, Debug)]
pub struct Fence {
    /// Nanoseconds since boot at which writes stop, or one of the two constants above.
    until: Arc<AtomicU64>,
}

impl Fence {
    /// A fence that never stops a write: for `--leader-elect=false`.
    pub fn always_open() -> Self {
        Self::from_raw(ALWAYS)
    }

    /// A fence that stops every write until it is opened: the state of a candidate.
    pub fn closed() -> Self {
        Self::from_raw(CLOSED)
    }

    fn from_raw(until: u64) -> Self {
        Self { until: Arc::new(AtomicU64::new(until)) }
    }

    /// Lets writes pass until `d` after `from`, in place of what was set before.
    pub fn open_for(&self, from: BootInstant, d: Duration) {
        // The two marks stay out of reach of a computed moment.
        let until = from.saturating_add(d).as_nanos().clamp(CLOSED + 1, ALWAYS - 1);
        self.until.store(until, Ordering::Release);
    }

    /// Stops every write from now on.
    pub fn close(&self) {
        self.until.store(CLOSED, Ordering::Release);
    }

    /// Whether a write may leave now.
    pub fn check(&self) -> Result<(), Fenced> {
        match self.until.load(Ordering::Acquire) {
            ALWAYS => Ok(()),
            CLOSED => Err(Fenced),
            until if BootInstant::now().as_nanos() < until => Ok(()),
            _ => Err(Fenced),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_fresh_candidate_may_not_write() {
        assert_eq!(Fence::closed().check(), Err(Fenced));
    }

    #[test]
    fn without_leader_election_every_write_passes() {
        assert_eq!(Fence::always_open().check(), Ok(()));
    }

    #[test]
    fn writes_pass_until_the_end_of_the_renewed_time_and_not_after() {
        let fence = Fence::closed();
        fence.open_for(BootInstant::now(), LONG);
        assert_eq!(fence.check(), Ok(()));

        let an_hour_ago = BootInstant::from_nanos(1);
        fence.open_for(an_hour_ago, Duration::from_nanos(1));
        assert_eq!(fence.check(), Err(Fenced));
    }

    #[test]
    fn closing_stops_every_clone_at_once() {
        let fence = Fence::closed();
        let seen_by_a_client = fence.clone();
        fence.open_for(BootInstant::now(), LONG);
        fence.close();
        assert_eq!(seen_by_a_client.check(), Err(Fenced));
    }
}
