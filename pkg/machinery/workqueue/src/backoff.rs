//! How long a key waits after its n-th failure in a row.

use std::time::Duration;

/// Exponential backoff per key: `base · 2ⁿ`, at most `cap`, give or take `jitter`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Wait after the first failure.
    pub base: Duration,
    /// Longest wait before jitter.
    pub cap: Duration,
    /// Largest deviation as a fraction of the wait: 0.2 draws from 80 % to 120 %. Keeps keys
    /// that failed together from coming back together. Values outside 0 to 1 are clamped.
    pub jitter: f64,
}

impl Backoff {
    /// Wait after `failures` failures before this one.
    pub(crate) fn delay(&self, failures: u32) -> Duration {
        // Beyond 2³¹ every base is past every cap anyone can want.
        let doubled = self.base.saturating_mul(1 << failures.min(31));
        let jitter = self.jitter.clamp(0.0, 1.0);
        doubled.min(self.cap).mul_f64(1.0 + jitter * rand::random_range(-1.0..=1.0))
    }
}
