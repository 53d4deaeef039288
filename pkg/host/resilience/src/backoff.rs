//! [`Backoff`]: how long to wait after the n-th failure in a row. [`Series`]: a backoff that counts the
//! failures of one activity. [`draw`]: the random numbers that spread waits.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Exponential backoff: `first · factorⁿ`, at most `cap`, then changed by `jitter`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Wait after the first failure.
    pub first: Duration,
    /// The factor of each further failure. Below 1 counts as 1: waits never shrink.
    pub factor: f64,
    /// Longest wait before jitter.
    pub cap: Duration,
    /// Keeps activities that failed together from retrying together.
    pub jitter: Jitter,
}

/// How a wait differs from its computed length, as fractions of that length. Negative fractions count
/// as 0; a fraction of [`Jitter::Around`] above 1 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// Exactly the computed length.
    None,
    /// Shorter or longer by up to this fraction: 0.2 draws from 80 % to 120 %.
    Around(f64),
    /// Longer by up to this fraction: 1.0 draws from 100 % to 200 %.
    Above(f64),
}

impl Backoff {
    /// A wait that doubles from `first` to `cap`.
    pub const fn doubling(first: Duration, cap: Duration, jitter: Jitter) -> Self {
        Self { first, factor: 2.0, cap, jitter }
    }

    /// Wait after a failure that `failures` others in a row came before.
    pub fn delay(&self, failures: u32) -> Duration {
        self.delay_drawn(failures, draw())
    }

    /// The wait after so many failures, with the random number `draw` in `[0, 1)`; [`delay`](Self::delay) draws one.
    pub fn delay_drawn(&self, failures: u32, draw: f64) -> Duration {
        self.jitter.apply(self.computed(failures), draw)
    }

    fn computed(&self, failures: u32) -> Duration {
        let exponent = i32::try_from(failures).unwrap_or(i32::MAX);
        let grown = self.first.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        // Also false for the NaN of a first wait of zero times infinity: nothing grows from zero.
        if grown >= self.cap.as_secs_f64() { self.cap } else { seconds(grown) }
    }
}

impl Jitter {
    fn apply(self, wait: Duration, draw: f64) -> Duration {
        let share = match self {
            Self::None => return wait,
            Self::Around(fraction) => fraction.clamp(0.0, 1.0) * (2.0 * draw - 1.0),
            Self::Above(fraction) => fraction.max(0.0) * draw,
        };
        seconds(wait.as_secs_f64() * (1.0 + share))
    }
}

/// `wait` in seconds; [`Duration::MAX`] if it is longer than a `Duration` can hold.
fn seconds(wait: f64) -> Duration {
    if wait.is_nan() {
        Duration::ZERO
    } else {
        Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
    }
}

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
    /// A series without a failure. Only [`Series::reset`] ends it.
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

thread_local! {
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// A random number in `[0, 1)`. A simulation seeds those of its thread, so that a run can be repeated.
#[allow(clippy::disallowed_methods, reason = "what all others call")]
pub fn draw() -> f64 {
    let seeded = SEEDED.with_borrow_mut(|seeded| Some(seeded.as_mut()?.random()));
    seeded.unwrap_or_else(rand::random)
}

/// From now on [`draw`] returns the numbers of this seed on this thread; with `None`, those of the system.
pub fn seed_draws(seed: Option<u64>) {
    SEEDED.set(seed.map(StdRng::seed_from_u64));
}

#[cfg(test)]
mod tests;
