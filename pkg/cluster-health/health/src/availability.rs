//! [`Availability`]: the share of the time in which a cluster was well, over an hour, a day and
//! 28 days.

pub(crate) mod objective;
pub(crate) mod record;

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::Moment;
use record::{Record, Sums};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// How long a cluster was well, of the time in which it was probed. Between two probes the result
/// of the first holds; time without a probe counts as neither.
#[derive(Clone, Debug)]
pub(crate) struct Availability {
    epoch: Instant,
    last: Option<(Instant, Found)>,
    /// `None` until a result has held for some time: a member that is not probed needs no memory
    /// for it.
    kept: Option<Box<Kept>>,
}

#[derive(Clone, Debug)]
struct Kept {
    hour: Window<13>,
    day: Window<25>,
    record: Record,
    totals: Sums,
    /// Time that counts as bad or not at all, as the guard decides.
    doubt: Duration,
}

impl Kept {
    fn new(record: Record) -> Self {
        let (hour, day) = (Window::new(5 * MINUTE), Window::new(HOUR));
        Self { hour, day, record, totals: Sums::default(), doubt: Duration::ZERO }
    }
}

/// What a probe found, for the time until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The cluster is well.
    Well,
    /// The cluster is not well.
    Bad,
    /// The cluster did not answer, or this process is cut off: the guard has not decided.
    InDoubt,
}

/// Shares between 0 and 1; `None` before the first record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// Ratio of the last hour.
    pub hour: Option<f64>,
    /// Ratio of the last 24 hours.
    pub day: Option<f64>,
    /// Ratio of the last 28 days.
    pub month: Option<f64>,
}

impl Availability {
    /// Continues `record`, which the object of the cluster keeps.
    pub(crate) fn new(record: Option<Record>, now: Instant) -> Self {
        Self { epoch: now, last: None, kept: record.map(|record| Box::new(Kept::new(record))) }
    }

    /// Takes in a probe that started at `now`. A gap longer than `longest` counts for that long.
    pub(crate) fn record(&mut self, found: Found, now: Moment, longest: Duration) {
        if let Some((before, found)) = self.last.replace((now.monotonic, found)) {
            let held = now.monotonic.saturating_duration_since(before).min(longest);
            match found {
                Found::Well => self.add(held, false, now),
                Found::Bad => self.add(held, true, now),
                Found::InDoubt => self.kept(now.wall).doubt += held,
            }
        }
    }

    /// The doubt about the last probes ends: their time counts as bad, or as not observed.
    pub(crate) fn settle(&mut self, is_bad: bool, now: Moment) {
        if let Some((at, Found::InDoubt)) = self.last {
            self.last = is_bad.then_some((at, Found::Bad));
        }
        let doubt = self.kept.as_mut().map(|kept| std::mem::take(&mut kept.doubt));
        if let Some(doubt) = doubt.filter(|doubt| is_bad && !doubt.is_zero()) {
            self.add(doubt, true, now);
        }
    }

    /// The result of a probe says nothing about the cluster: the time from the probe before to the next one does not count.
    pub(crate) fn skip(&mut self) {
        self.last = None;
        if let Some(kept) = &mut self.kept {
            kept.doubt = Duration::ZERO;
        }
    }

    fn add(&mut self, held: Duration, is_bad: bool, now: Moment) {
        let at = now.monotonic.saturating_duration_since(self.epoch);
        let kept = self.kept(now.wall);
        kept.hour.add(at, held, !is_bad);
        kept.day.add(at, held, !is_bad);
        kept.record.add(held, is_bad, now.wall);
        kept.totals.observed += held;
        if is_bad {
            kept.totals.bad += held;
        }
    }

    fn kept(&mut self, now: Timestamp) -> &mut Kept {
        self.kept.get_or_insert_with(|| Box::new(Kept::new(Record::new(now))))
    }

    /// Since when this process has counted it; only the 28 days reach further back.
    pub(crate) fn since(&self) -> Instant {
        self.epoch
    }

    /// What the object keeps; `None` before the first.
    pub(crate) fn to_keep(&self) -> Option<&Record> {
        self.kept.as_ref().map(|kept| &kept.record)
    }

    /// The sums of the last 28 days.
    pub(crate) fn sums(&self, now: Timestamp) -> Sums {
        self.to_keep().map(|record| record.sums(now)).unwrap_or_default()
    }

    /// The sums since this process has counted it.
    pub(crate) fn totals(&self) -> Sums {
        self.kept.as_ref().map(|kept| kept.totals).unwrap_or_default()
    }

    pub(crate) fn ratios(&self, now: Moment) -> Ratios {
        let at = now.monotonic.saturating_duration_since(self.epoch);
        let Some(kept) = &self.kept else {
            return Ratios { hour: None, day: None, month: None };
        };
        let Kept { hour, day, record, .. } = &**kept;
        Ratios { hour: hour.ratio(at), day: day.ratio(at), month: record.sums(now.wall).ratio() }
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
mod tests;
