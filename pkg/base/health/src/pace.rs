//! [`Pace`]: a rate of writes, as a bucket of tokens without a clock.

use std::time::{Duration, Instant};

/// Lets `burst` pass at once and then one each `interval`.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    interval: Duration,
    /// How far ahead of its time a write may be.
    tolerance: Duration,
    /// When the bucket will be full again.
    full_at: Option<Instant>,
}

impl Pace {
    /// `per_second` writes, and `burst` of them at once after a quiet time. A rate that is not
    /// positive counts as one write in a day.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / per_second)
            .unwrap_or(Duration::from_secs(86_400))
            .min(Duration::from_secs(86_400));
        Self { interval, tolerance: interval * burst.saturating_sub(1), full_at: None }
    }

    /// Takes a token at `now`.
    ///
    /// # Errors
    /// When there is none yet: the time at which there will be one.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        match full_at.checked_sub(self.tolerance) {
            Some(allowed) if allowed > now => Err(allowed),
            _ => {
                self.full_at = Some(full_at + self.interval);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate_holds() {
        let (mut pace, start) = (Pace::new(50.0, 3), Instant::now());
        let (mut now, mut passed) = (start, Vec::new());
        for _ in 0..6 {
            while let Err(at) = pace.take(now) {
                now = at;
            }
            passed.push(now - start);
        }
        assert_eq!(passed, [0, 0, 0, 20, 40, 60].map(MS));
        let quiet = now + Duration::from_secs(60);
        assert_eq!([0; 4].map(|_| pace.take(quiet)), [Ok(()), Ok(()), Ok(()), Err(quiet + MS(20))]);
    }

    #[test]
    fn a_rate_of_nothing_lets_one_write_pass() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let (mut pace, now) = (Pace::new(rate, 1), Instant::now());
            assert_eq!(pace.take(now), Ok(()));
        }
    }
}
