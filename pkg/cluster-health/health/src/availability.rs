//! [`Availability`]: the share of the time in which a cluster was well, over an hour, a day and
//! thirty days, in half a kilobyte.

use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// How long a cluster was well, of the time in which it was probed. Between two probes the result
/// of the first holds; time without a probe counts as neither.
#[derive(Clone, Debug)]
pub(crate) struct Availability {
    epoch: Instant,
    last: Option<(Instant, bool)>,
    /// `None` until a result has held for some time: a member that is not probed needs no memory
    /// for it.
    windows: Option<Box<Windows>>,
}

#[derive(Clone, Debug)]
struct Windows {
    hour: Window<13>,
    day: Window<25>,
    month: Window<31>,
}

impl Default for Windows {
    fn default() -> Self {
        let (hour, day) = (Window::new(5 * MINUTE), Window::new(HOUR));
        Self { hour, day, month: Window::new(DAY) }
    }
}

/// Shares between 0 and 1; `None` before the first record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// Ratio of the last hour.
    pub hour: Option<f64>,
    /// Ratio of the last 24 hours.
    pub day: Option<f64>,
    /// Ratio of the last 30 days.
    pub month: Option<f64>,
}

impl Availability {
    pub(crate) fn new(now: Instant) -> Self {
        Self { epoch: now, last: None, windows: None }
    }

    /// Takes in a probe that started at `now`. A gap longer than `longest` counts for that long.
    pub(crate) fn record(&mut self, ok: bool, now: Instant, longest: Duration) {
        if let Some((before, well)) = self.last.replace((now, ok)) {
            let held = now.saturating_duration_since(before).min(longest);
            let at = now.saturating_duration_since(self.epoch);
            let windows = self.windows.get_or_insert_default();
            windows.hour.add(at, held, well);
            windows.day.add(at, held, well);
            windows.month.add(at, held, well);
        }
    }

    /// The result of a probe says nothing about the cluster: the time from the probe before to the next one does not count.
    pub(crate) fn skip(&mut self) {
        self.last = None;
    }

    /// Since when it has been counted; before that nothing is known.
    pub(crate) fn since(&self) -> Instant {
        self.epoch
    }

    pub(crate) fn ratios(&self, now: Instant) -> Ratios {
        let at = now.saturating_duration_since(self.epoch);
        let Some(windows) = &self.windows else {
            return Ratios { hour: None, day: None, month: None };
        };
        let Windows { hour, day, month } = &**windows;
        Ratios { hour: hour.ratio(at), day: day.ratio(at), month: month.ratio(at) }
    }
}

/// `N` slots of equal length. The newest is not complete, so they cover at least `N - 1` slots.
#[derive(Clone, Debug)]
struct Window<const N: usize> {
    slot: Duration,
    newest: u64,
    /// Milliseconds observed, and well, per slot.
    slots: [(u32, u32); N],
}

impl<const N: usize> Window<N> {
    fn new(slot: Duration) -> Self {
        Self { slot, newest: 0, slots: [(0, 0); N] }
    }

    fn number(&self, at: Duration) -> u64 {
        at.as_secs() / self.slot.as_secs().max(1)
    }

    fn add(&mut self, at: Duration, held: Duration, well: bool) {
        let number = self.number(at);
        while self.newest < number {
            // Whoever slept longer than the window has nothing left to clear.
            self.newest = (self.newest + 1).max(number.saturating_sub(N as u64));
            let index = Self::index(self.newest);
            self.slots[index] = (0, 0);
        }
        let index = Self::index(number);
        let (observed, up) = &mut self.slots[index];
        let millis = u32::try_from(held.as_millis()).unwrap_or(u32::MAX);
        *observed = observed.saturating_add(millis);
        if well {
            *up = up.saturating_add(millis);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the remainder is below N")]
    fn index(number: u64) -> usize {
        (number % N as u64) as usize
    }

    fn ratio(&self, at: Duration) -> Option<f64> {
        let now = self.number(at);
        let oldest = (now + 1).saturating_sub(N as u64);
        let live = (oldest..=self.newest).map(|number| self.slots[Self::index(number)]);
        let (observed, up) = live.fold((0_u64, 0_u64), |(observed, up), slot| {
            (observed + u64::from(slot.0), up + u64::from(slot.1))
        });
        #[allow(
            clippy::cast_precision_loss,
            reason = "a month has far fewer than 2^52 milliseconds"
        )]
        (observed > 0).then(|| up as f64 / observed as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn a_ratio_is_the_share_of_observed_time_and_old_time_leaves_its_window() {
        let start = Instant::now();
        let mut availability = Availability::new(start);
        assert_eq!(availability.ratios(start), Ratios { hour: None, day: None, month: None });
        // One hour with 90 bad seconds, probed every 10 s.
        for n in 0..=360 {
            availability.record(!(100..109).contains(&n), start + S(10 * n), S(20));
        }
        let close = |ratio: Option<f64>, share: f64| (ratio.unwrap() - share).abs() < 0.001;
        let ratios = availability.ratios(start + S(3600));
        assert!(close(ratios.hour, 1.0 - 90.0 / 3600.0), "{ratios:?}");
        for n in 361..=1000 {
            availability.record(true, start + S(10 * n), S(20));
        }
        let ratios = availability.ratios(start + S(10_000));
        assert!(close(ratios.hour, 1.0) && close(ratios.day, 1.0 - 90.0 / 10_000.0), "{ratios:?}");
        let ratios = availability.ratios(start + 40 * DAY);
        assert_eq!(ratios, Ratios { hour: None, day: None, month: None });
    }

    #[test]
    fn a_gap_counts_no_longer_than_a_probe_can_be_away() {
        let start = Instant::now();
        let mut availability = Availability::new(start);
        availability.record(true, start, S(20));
        availability.record(false, start + DAY, S(20));
        availability.record(true, start + DAY + S(20), S(20));
        assert_eq!(availability.ratios(start + DAY + S(20)).month, Some(0.5));
    }

    #[test]
    fn a_window_that_slept_for_years_starts_anew() {
        let start = Instant::now();
        let mut availability = Availability::new(start);
        availability.record(false, start, S(20));
        availability.record(false, start + S(10), S(20));
        let later = start + 3650 * DAY;
        availability.record(true, later, S(20));
        availability.record(true, later + S(10), S(20));
        assert!(availability.ratios(later + S(10)).month.unwrap() > 0.3);
        assert!(size_of::<Availability>() + size_of::<Windows>() <= 700);
    }
}
