//! The spam filter: how many events one source may write about one object for one reason.
//!
//! Used by [`crate::correlate`]. client-go's numbers; its key lacks the reason, so that one chatty
//! reason silences every other one about the same object (rule:one-reason-silences-no-other).

use std::time::Duration;

use tokio::time::Instant;

/// Events that may come at once.
const BURST: f64 = 25.0;
/// Time to regain one event.
const REFILL: Duration = Duration::from_secs(300);

/// A token bucket that starts full.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    pub(crate) fn full(now: Instant) -> Self {
        Self { tokens: BURST, filled: now }
    }

    /// Takes a token if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let gained = now.duration_since(self.filled).as_secs_f64() / REFILL.as_secs_f64();
        self.tokens = (self.tokens + gained).min(BURST);
        self.filled = now;
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn twenty_five_pass_at_once_and_one_more_every_five_minutes() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        assert_eq!((0..100).filter(|_| bucket.take(start)).count(), 25);
        assert!(!bucket.take(start + Duration::from_secs(299)));
        assert!(bucket.take(start + Duration::from_millis(300_100)));
        assert!(!bucket.take(start + Duration::from_millis(300_200)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_silence_refills_the_burst_and_no_more() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        while bucket.take(start) {}
        let later = start + REFILL * 1_000;
        assert_eq!((0..100).filter(|_| bucket.take(later)).count(), 25);
    }
}
