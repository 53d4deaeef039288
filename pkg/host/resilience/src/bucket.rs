//! [`Bucket`]: a token bucket that slows down when a cloud says so. Its rate changes, which the
//! limiters of libraries do not know.

use std::time::{Duration, Instant};

/// How many calls may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Calls in a second, in the long run.
    pub per_second: f64,
    /// Calls at once after a pause.
    pub burst: u32,
}

/// For so long a throttled bucket stays at its lower rate.
const SLOW_FOR: Duration = Duration::from_secs(60);
/// Afterwards it regains a tenth of its full rate in each of these.
const RECOVERS_EVERY: Duration = Duration::from_secs(10);
/// Answers to calls that were sent together are one sign, not many.
const ONE_SIGN: Duration = Duration::from_secs(2);
/// It never gets slower than this part of its full rate.
const SLOWEST: f64 = 1.0 / 16.0;

/// Tokens, and how fast they come back. After [`Bucket::throttled`] the rate is halved for a minute,
/// and comes back a tenth in every ten seconds.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    tokens: f64,
    counted: Instant,
    slowed: Option<Slowed>,
}

#[derive(Clone, Copy, Debug)]
struct Slowed {
    since: Instant,
    /// The part of the full rate that is left.
    factor: f64,
}

impl Bucket {
    /// A full one.
    pub fn new(rate: Rate, now: impl Into<Instant>) -> Self {
        let tokens = f64::from(rate.burst.max(1));
        Self { rate, tokens, counted: now.into(), slowed: None }
    }

    /// Takes a token, or tells how long it takes until there is one.
    ///
    /// # Errors
    /// The time until there is one.
    pub fn take(&mut self, now: impl Into<Instant>) -> Result<(), Duration> {
        let now = now.into();
        self.refill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = 1.0 - self.tokens;
        // A little more than exact, so that a token is there when the wait is over.
        let seconds = missing / self.per_second(now) + 0.001;
        Err(Duration::try_from_secs_f64(seconds).unwrap_or(SLOW_FOR))
    }

    /// The cloud has refused a call as one too many: what is left is lost, and the rate is halved.
    pub fn throttled(&mut self, now: impl Into<Instant>) {
        let now = now.into();
        self.refill(now);
        self.tokens = 0.0;
        let is_known = |slowed: Slowed| now.saturating_duration_since(slowed.since) < ONE_SIGN;
        if !self.slowed.is_some_and(is_known) {
            let factor = (self.factor(now) / 2.0).max(SLOWEST);
            self.slowed = Some(Slowed { since: now, factor });
        }
    }

    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.counted).as_secs_f64();
        let full = f64::from(self.rate.burst.max(1));
        self.tokens = (self.tokens + elapsed * self.per_second(now)).min(full);
        self.counted = now;
    }

    fn per_second(&self, now: Instant) -> f64 {
        self.rate.per_second.max(0.01) * self.factor(now)
    }

    fn factor(&self, now: Instant) -> f64 {
        let Some(slowed) = self.slowed else { return 1.0 };
        let since = now.saturating_duration_since(slowed.since).saturating_sub(SLOW_FOR);
        let steps = (since.as_secs_f64() / RECOVERS_EVERY.as_secs_f64()).floor();
        (slowed.factor + 0.1 * steps).min(1.0)
    }
}

#[cfg(test)]
mod tests;
