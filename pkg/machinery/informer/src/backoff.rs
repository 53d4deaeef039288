//! How long the reflector waits after a failure: 0.8 s, doubled each time, with jitter, at most
//! 30 s (`host.md` 11).

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(800);
/// Half of the longest wait, since jitter can double it.
const LAST: Duration = Duration::from_secs(15);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

pub(crate) struct Backoff {
    next: Duration,
    last_used: Instant,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST, last_used: Instant::now() }
    }

    /// The next wait. Starts from the shortest again when none was needed for two minutes.
    pub(crate) fn wait(&mut self) -> Duration {
        if self.last_used.elapsed() > FORGOTTEN_AFTER {
            self.reset();
        }
        let wait = self.next.mul_f64(rand::random_range(1.0..2.0));
        self.next = (self.next * 2).min(LAST);
        self.last_used = Instant::now() + wait;
        wait
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_doubling(backoff: &mut Backoff) {
        for low in [0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0] {
            let wait = backoff.wait().as_secs_f64();
            assert!((low..low * 2.0).contains(&wait), "{wait} is not in {low}..{}", low * 2.0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_with_jitter_and_stay_under_thirty_seconds() {
        assert_doubling(&mut Backoff::new());
    }

    #[tokio::test(start_paused = true)]
    async fn waits_start_over_after_success_and_after_two_quiet_minutes() {
        let mut backoff = Backoff::new();
        assert_doubling(&mut backoff);
        backoff.reset();
        assert_doubling(&mut backoff);
        tokio::time::advance(Duration::from_secs(30 + 121)).await;
        assert_doubling(&mut backoff);
    }
}
