//! [`Limits`]: how many calls are under way at once, and how many there are in a second
//! (`rule:google-is-called-within-limits`).

use parking_lot::Mutex as SyncMutex;
use resilience::{Bucket, Rate};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};

/// Most calls under way at once.
pub const CALLS_AT_ONCE: usize = 32;

/// Below the 25 in a second that a project may read of a region unless it asks for more.
const RATE: Rate = Rate { per_second: 20.0, burst: 60 };

/// Shared by all calls.
pub(crate) struct Limits {
    slots: Semaphore,
    bucket: SyncMutex<Bucket>,
    /// First come, first served: tokio's lock is fair.
    line: Mutex<()>,
}

impl Limits {
    pub(crate) fn new() -> Self {
        let bucket = SyncMutex::new(Bucket::new(RATE, Instant::now()));
        Self { slots: Semaphore::new(CALLS_AT_ONCE), bucket, line: Mutex::default() }
    }

    /// Waits until a call may be sent. The call is under way until what is returned is dropped,
    /// which is always some: nobody closes the slots.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let _first = self.line.lock().await;
        let slot = self.slots.acquire().await.ok();
        loop {
            let taken = self.bucket.lock().take(Instant::now());
            match taken {
                Ok(()) => return slot,
                Err(wait) => sleep(wait).await,
            }
        }
    }

    /// Google has refused a call as one too many.
    pub(crate) fn throttled(&self) {
        self.bucket.lock().throttled(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// `rule:google-is-called-within-limits`
    #[tokio::test(start_paused = true)]
    async fn so_many_calls_are_under_way_and_the_next_waits_for_one_to_end() {
        let limits = Limits::new();
        let mut turns = Vec::new();
        for _ in 0..CALLS_AT_ONCE {
            turns.push(limits.turn().await);
        }
        let wait = timeout(Duration::from_secs(600), limits.turn()).await;
        assert!(wait.is_err(), "one more than there may be");
        turns.pop();
        timeout(Duration::from_secs(1), limits.turn()).await.expect("one has ended");
    }

    /// `rule:google-is-called-within-limits`
    #[tokio::test(start_paused = true)]
    async fn calls_that_end_at_once_are_paced() {
        let (limits, start) = (Limits::new(), Instant::now());
        for _ in 0..160 {
            drop(limits.turn().await);
        }
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6), "{took:?}");
    }
}
