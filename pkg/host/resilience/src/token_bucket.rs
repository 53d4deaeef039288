//! [`TokenBucket`]: the one rate limit of the workspace. It bounds requests to the API server and to
//! clouds, writes of statuses, and events. It holds no clock and never sleeps.

use std::time::{Duration, Instant};

/// How many calls may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Calls per second in the long run. A rate that is not positive counts as one call per day.
    pub per_second: f64,
    /// Calls at once after a pause; 0 counts as 1.
    pub burst: u32,
}

/// A throttled bucket stays at its lower rate for this long.
const SLOW_FOR: Duration = Duration::from_secs(60);
/// Afterwards the bucket regains a tenth of its full rate per such interval.
const RECOVERS_EVERY: Duration = Duration::from_secs(10);
/// Refusals within this time of the first one answer calls that were sent together: they count once.
const ONE_SIGN: Duration = Duration::from_secs(2);
/// The lowest part of the full rate.
const SLOWEST: f64 = 1.0 / 16.0;
/// The lowest and the highest rate, per second.
const RATES: (f64, f64) = (1.0 / 86_400.0, 1e9);
/// Half a nanosecond of refill at 1,000 tokens per second. Waits are rounded to nanoseconds; without
/// this a token could be missing when its wait is over.
const ROUNDING: f64 = 1e-6;

/// Tokens and how fast they come back. [`TokenBucket::throttled`] halves the rate for a minute; then
/// the rate recovers by a tenth every ten seconds.
#[derive(Clone, Debug)]
pub struct TokenBucket {
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

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: impl Into<Instant>) -> Self {
        let (slowest, fastest) = RATES;
        // `max` first: it turns NaN into a number.
        let per_second = rate.per_second.max(slowest).min(fastest);
        let rate = Rate { per_second, burst: rate.burst.max(1) };
        Self { rate, tokens: f64::from(rate.burst), counted: now.into(), slowed: None }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The time until there is one.
    pub fn take(&mut self, now: impl Into<Instant>) -> Result<(), Duration> {
        let now = now.into();
        self.refill(now);
        let missing = 1.0 - self.tokens;
        if missing <= ROUNDING {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64(missing / self.per_second(now)))
    }

    /// Lowers the rate after the server refused a call as one too many; the tokens left are lost.
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

    /// The share of the burst that is spent: 0 is full, 1 is empty.
    pub fn utilization(&self, now: impl Into<Instant>) -> f64 {
        (1.0 - self.level(now.into()) / f64::from(self.rate.burst)).clamp(0.0, 1.0)
    }

    fn refill(&mut self, now: Instant) {
        self.tokens = self.level(now);
        self.counted = self.counted.max(now);
    }

    fn level(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.counted).as_secs_f64();
        (self.tokens + elapsed * self.per_second(now)).min(f64::from(self.rate.burst))
    }

    fn per_second(&self, now: Instant) -> f64 {
        self.rate.per_second * self.factor(now)
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
