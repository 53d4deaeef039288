//! [`Record`]: how long a cluster was observed, and bad, on each of 29 UTC days, as the text that its
//! object keeps.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

/// The 28 days of an objective. The first one is partly over while the last one is partly to come.
const DAYS: u32 = 29;
/// The longest text of a record.
const TEXT_MAX: usize = 256;
const VERSION: &str = "v1";
const DAY: Duration = Duration::from_secs(SECONDS_OF_DAY as u64);
const SECONDS_OF_DAY: u32 = 86_400;
const MILLIS_OF_DAY: u32 = SECONDS_OF_DAY * 1000;

/// Observed and bad time of a cluster by UTC day, to the second as text.
///
/// The wall clock names the days, and the monotonic clock measures what is added to them, so a wrong
/// wall clock shifts time to another day and makes none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The newest day that has a slot, in days since 1970.
    newest: u32,
    /// By the remainder of the day.
    slots: [Slot; DAYS as usize],
}

/// Milliseconds of one day. Bad time is observed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    observed: u32,
    bad: u32,
}

/// How long a cluster was observed, and how much of that was bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Time in which results of probes said how the cluster is.
    pub observed: Duration,
    /// The part of it in which the last probe was not ok.
    pub bad: Duration,
}

impl Sums {
    /// The part of the observed time in which the cluster was well; `None` without observed time.
    pub fn ratio(&self) -> Option<f64> {
        let bad = self.bad.as_secs_f64() / self.observed.as_secs_f64();
        (!self.observed.is_zero()).then_some(1.0 - bad)
    }
}

impl Record {
    /// A record of nothing at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { newest: day_of(now), slots: [Slot::default(); DAYS as usize] }
    }

    /// Adds `held`, which ended at `until`, to the day of its end and to the day before.
    pub(crate) fn add(&mut self, held: Duration, is_bad: bool, until: Timestamp) {
        let day = day_of(until);
        self.move_to(day);
        let today = held.min(since_midnight(until));
        self.put(day, today, is_bad);
        if let Some(before) = day.checked_sub(1) {
            self.put(before, held.saturating_sub(today), is_bad);
        }
    }

    fn put(&mut self, day: u32, held: Duration, is_bad: bool) {
        let held = u32::try_from(held.as_millis()).unwrap_or(u32::MAX).min(MILLIS_OF_DAY);
        let slot = &mut self.slots[index(day)];
        let bad = if is_bad { slot.bad + held } else { slot.bad };
        *slot = Slot::scaled(slot.observed + held, bad);
    }

    /// Makes room for `day`, and drops the days that no clock of a replica can have seen yet: those
    /// after the day that follows.
    fn move_to(&mut self, day: u32) {
        let latest = day.saturating_add(1);
        while self.newest < day {
            // Older slots than the record has are cleared once.
            self.newest = (self.newest + 1).max(day.saturating_sub(DAYS));
            self.slots[index(self.newest)] = Slot::default();
        }
        if self.newest > latest {
            let slots = self.days().filter(|(day, _)| *day <= latest).collect::<Vec<_>>();
            (self.newest, self.slots) = (latest, [Slot::default(); DAYS as usize]);
            for (day, slot) in slots {
                self.slots[index(day)] = slot;
            }
        }
    }

    /// The days with a slot, the newest first.
    fn days(&self) -> impl Iterator<Item = (u32, Slot)> {
        let oldest = (self.newest + 1).saturating_sub(DAYS);
        (oldest..=self.newest).rev().map(|day| (day, self.slots[index(day)]))
    }

    /// The sums of the 28 days before `now`. Of the first day, no more counts than fits into its part
    /// of the 28 days.
    pub fn sums(&self, now: Timestamp) -> Sums {
        let (today, rest) = (day_of(now), DAY.saturating_sub(since_midnight(now)));
        let mut sums = Sums::default();
        for (day, slot) in self.days().filter(|(day, _)| day + DAYS > today) {
            let [observed, bad] =
                [slot.observed, slot.bad].map(|it| Duration::from_millis(it.into()));
            let is_first = day + DAYS == today + 1;
            let share = if is_first && observed > rest {
                rest.as_secs_f64() / observed.as_secs_f64()
            } else {
                1.0
            };
            sums.observed += observed.mul_f64(share);
            sums.bad += bad.mul_f64(share);
        }
        sums
    }

    /// The record as text, with at most 256 characters: `v1.<newest day>.<base64url>`. The bytes are
    /// the observed and the bad seconds of each day, the newest first, as varints.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(TEXT_MAX);
        let mut used = 0;
        for (_, slot) in self.days() {
            let [observed, bad] = [slot.observed, slot.bad].map(|it| (it + 500) / 1000);
            push(&mut bytes, observed);
            push(&mut bytes, bad);
            if observed > 0 {
                used = bytes.len();
            }
        }
        bytes.truncate(used);
        format!("{VERSION}.{}.{}", self.newest, URL_SAFE_NO_PAD.encode(&bytes))
    }

    /// Reads the text of [`Self::encode`] at `now`; `None` when it is no record. Slots that cannot be
    /// read or are of a later day than tomorrow are dropped, and the others have at most a day. The
    /// clock of the replica that wrote it may be ahead by hours.
    pub fn decode(text: &str, now: Timestamp) -> Option<Self> {
        let rest = text.strip_prefix(VERSION)?.strip_prefix('.')?;
        let (newest, data) = rest.split_once('.').filter(|_| text.len() <= TEXT_MAX)?;
        let is_number = newest.bytes().all(|byte| byte.is_ascii_digit());
        let newest = newest.parse::<u32>().ok().filter(|_| is_number)?;
        let bytes = URL_SAFE_NO_PAD.decode(data).ok()?;
        let mut record = Self::new(now);
        let tomorrow = record.newest.saturating_add(1);
        record.newest = newest.min(tomorrow);
        let oldest = (record.newest + 1).saturating_sub(DAYS);
        let mut bytes = &*bytes;
        for day in (oldest..=newest).rev().take(DAYS as usize) {
            let Some((observed, bad)) = pull(&mut bytes).zip(pull(&mut bytes)) else { break };
            if day <= tomorrow {
                let [observed, bad] = [observed, bad].map(|it| it.saturating_mul(1000));
                record.slots[index(day)] = Slot::clamped(observed, bad);
            }
        }
        Some(record)
    }

    /// The record at the end of the message of a condition.
    pub fn at_end_of(message: &str) -> &str {
        message.rsplit(' ').next().unwrap_or_default()
    }
}

impl Slot {
    /// A day that two clocks had at different times may get more time than it has: the ratio stays.
    fn scaled(observed: u32, bad: u32) -> Self {
        let most = u64::from(observed.max(MILLIS_OF_DAY));
        let bad = u64::from(bad) * u64::from(MILLIS_OF_DAY) / most;
        Self::clamped(observed, u32::try_from(bad).unwrap_or(u32::MAX))
    }

    fn clamped(observed: u32, bad: u32) -> Self {
        let observed = observed.min(MILLIS_OF_DAY);
        Self { observed, bad: bad.min(observed) }
    }
}

/// The UTC day, in days since 1970.
fn day_of(at: Timestamp) -> u32 {
    u32::try_from(at.as_second().div_euclid(i64::from(SECONDS_OF_DAY))).unwrap_or_default()
}

fn since_midnight(at: Timestamp) -> Duration {
    let nanos = at.as_nanosecond().rem_euclid(DAY.as_nanos().cast_signed());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

fn index(day: u32) -> usize {
    (day % DAYS) as usize
}

fn push(bytes: &mut Vec<u8>, value: u32) {
    let [low, rest] = [value & 0x7f, value >> 7];
    let more = if rest > 0 { 0x80 } else { 0 };
    bytes.extend(u8::try_from(low | more));
    if rest > 0 {
        push(bytes, rest);
    }
}

/// The next number; `None` when it does not end, or is larger than any that is written.
fn pull(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in [0, 7, 14, 21] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests;
