//! How many probes may be under way at once, and [`Pace`]: a rate of writes.

use std::time::{Duration, Instant};

use crate::Cadence;

/// Enough for a few hundred silent members whatever the flags say.
const AT_LEAST: usize = 256;
/// Spare probes above those that are needed when every member is silent.
const HEADROOM: f64 = 1.25;

/// Members that are probed alike.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many.
    pub members: usize,
    /// How often.
    pub cadence: Cadence,
}

/// The cap for these members: when all of them are silent and their runs are being confirmed, every
/// probe still starts in time.
pub fn probes_at_once(loads: &[Load]) -> usize {
    let needed = under_way(loads, |cadence| cadence.confirming().max(cadence.timeout));
    ceil(needed * HEADROOM).max(AT_LEAST)
}

/// True when `cap` cannot keep the periods while every member is silent
pub fn is_insufficient(cap: usize, loads: &[Load]) -> bool {
    cap < ceil(under_way(loads, |cadence| cadence.period.max(cadence.timeout)))
}

/// Probes under way at any time when each takes its timeout and comes again after `interval`.
fn under_way(loads: &[Load], interval: impl Fn(&Cadence) -> Duration) -> f64 {
    let part = |load: &Load| {
        let share = load.cadence.timeout.as_secs_f64() / interval(&load.cadence).as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "no installation has 2^52 members")]
        let members = load.members as f64;
        if share.is_finite() { members * share } else { members }
    };
    loads.iter().map(part).sum()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative, and a float too large saturates"
)]
fn ceil(value: f64) -> usize {
    value.ceil() as usize
}

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
    /// The time of the next free slot, when none is free now.
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

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    const KUBEFED: Cadence =
        Cadence { period: secs(10), timeout: secs(3), confirm: secs(10), jitter: 0.1 };
    const TKE: Cadence =
        Cadence { period: secs(300), timeout: secs(5), confirm: secs(10), jitter: 0.1 };

    #[test]
    fn the_cap_has_room_for_all_members_being_silent_at_once() {
        let load = |members, cadence| Load { members, cadence };
        let slow = Cadence { timeout: secs(20), ..KUBEFED };
        let rows: [(&[Load], usize); 6] = [
            (&[], 256),
            (&[load(100, KUBEFED)], 256),
            (&[load(10_000, KUBEFED)], 3750),
            (&[load(10_000, TKE)], 6250),
            (&[load(10_000, KUBEFED), load(10_000, TKE)], 10_000),
            (&[load(1000, slow)], 1250),
        ];
        for (loads, cap) in rows {
            assert_eq!(probes_at_once(loads), cap);
        }
    }

    #[test]
    fn a_cap_is_too_small_when_silent_members_alone_fill_it() {
        let loads = [Load { members: 10_000, cadence: KUBEFED }];
        assert!(is_insufficient(2999, &loads));
        assert!(!is_insufficient(3000, &loads));
        assert!(!is_insufficient(1, &[]));
    }
}

#[cfg(test)]
mod pace_tests {
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
