//! [`Series`]: a backoff that counts its own failures.

use std::time::{Duration, Instant};

use crate::Backoff;

/// The failures of one activity in a row, and the wait after each.
#[derive(Debug, Clone)]
pub struct Series {
    backoff: Backoff,
    failures: u32,
    forget_after: Option<Duration>,
    /// When the last wait ends.
    waits_until: Option<Instant>,
}

impl Series {
    /// No failure yet; the row ends with [`Series::reset`] only.
    pub fn new(backoff: Backoff) -> Self {
        Self { backoff, failures: 0, forget_after: None, waits_until: None }
    }

    /// The row also ends when no further failure comes within `quiet` after a wait.
    #[must_use]
    pub fn forget_after(mut self, quiet: Duration) -> Self {
        self.forget_after = Some(quiet);
        self
    }

    /// Counts a failure that happened at `now` and returns how long to wait.
    pub fn fail(&mut self, now: impl Into<Instant>) -> Duration {
        let now = now.into();
        if self.is_forgotten(now) {
            self.reset();
        }
        let wait = self.backoff.delay(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.waits_until = now.checked_add(wait);
        wait
    }

    /// Ends the row: the next failure is the first one.
    pub fn reset(&mut self) {
        self.failures = 0;
        self.waits_until = None;
    }

    /// Failures in the row so far.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        let (Some(quiet), Some(until)) = (self.forget_after, self.waits_until) else {
            return false;
        };
        now.saturating_duration_since(until) > quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Jitter;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn series() -> Series {
        Series::new(Backoff::doubling(S(1), S(8), Jitter::None))
    }

    #[test]
    fn waits_grow_with_each_failure_until_reset() {
        let (mut series, now) = (series(), Instant::now());
        assert_eq!([0; 5].map(|_| series.fail(now)), [1, 2, 4, 8, 8].map(S));
        assert_eq!(series.failures(), 5);
        series.reset();
        assert_eq!((series.failures(), series.fail(now)), (0, S(1)));
    }

    #[test]
    fn without_a_time_to_forget_a_row_lasts_for_ever() {
        let (mut series, now) = (series(), Instant::now());
        series.fail(now);
        assert_eq!(series.fail(now + S(1_000_000)), S(2));
    }

    #[test]
    fn quiet_time_counts_from_the_end_of_the_wait_and_ends_the_row_when_it_is_over() {
        let (mut series, now) = (series().forget_after(S(120)), Instant::now());
        series.fail(now);
        series.fail(now + S(1));
        let wait_ends = now + S(1) + S(2);
        assert_eq!(series.clone().fail(wait_ends + S(120)), S(4));
        assert_eq!(series.fail(wait_ends + S(120) + Duration::from_nanos(1)), S(1));
        assert_eq!(series.failures(), 1);
    }
}
