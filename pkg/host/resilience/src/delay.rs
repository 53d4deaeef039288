//! [`Backoff`]: how long to wait after the n-th failure in a row, as a plain value.

use std::time::Duration;

/// Exponential backoff: `first · factorⁿ`, at most `cap`, then changed by `jitter`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Wait after the first failure.
    pub first: Duration,
    /// What each further failure multiplies the wait by. Below 1 counts as 1: waits never shrink.
    pub factor: f64,
    /// Longest wait before jitter.
    pub cap: Duration,
    /// Keeps those that failed together from coming back together.
    pub jitter: Jitter,
}

/// How a wait differs from its computed length. Fractions are of that length; negative ones count
/// as 0, and one of [`Jitter::Around`] above 1 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// It does not.
    None,
    /// Shorter or longer by up to this fraction: 0.2 draws from 80 % to 120 %.
    Around(f64),
    /// Longer by up to this fraction: 1.0 draws from 100 % to 200 %.
    Above(f64),
}

impl Backoff {
    /// Doubles from `first` to `cap`.
    pub const fn doubling(first: Duration, cap: Duration, jitter: Jitter) -> Self {
        Self { first, factor: 2.0, cap, jitter }
    }

    /// Wait after a failure that `failures` others in a row came before.
    pub fn delay(&self, failures: u32) -> Duration {
        self.delay_drawn(failures, rand::random())
    }

    /// The same with the random number given: `draw` is in `[0, 1)`.
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

/// A wait too long for a `Duration` is the longest one.
fn seconds(wait: f64) -> Duration {
    if wait.is_nan() {
        Duration::ZERO
    } else {
        Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests;
