//! [`Schedule`]: every key that is due, in hand, comes later, or is kept away, as one plain value.
//! `queue.rs` holds it under its lock. Keys come back at the earliest of several times ([`Delays`]),
//! after failures in a row ([`Failures`]), and after panics ([`Quarantine`],
//! rule:quarantine-after-panic).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use resilience::{Backoff, Jitter};
use tokio::time::Instant;

use crate::state::{Added, Key, Lane, State, Taken};

/// A time no process lives to see, for waits that overflow the clock.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

pub(crate) struct Schedule<K> {
    state: State<K>,
    delays: Delays<K>,
    quarantine: Quarantine<K>,
    closed: bool,
}

impl<K: Key> Schedule<K> {
    pub(crate) fn new() -> Self {
        Self {
            state: State::new(),
            delays: Delays::new(),
            quarantine: Quarantine::new(),
            closed: false,
        }
    }

    /// Makes the key due now. One that is kept away comes when its time is over.
    pub(crate) fn add(&mut self, key: K, now: Instant) -> Added {
        self.make_due(key, Lane::Added, now, now)
    }

    /// Makes the key come back after `delay`. True when this is the first deadline of all.
    pub(crate) fn add_later(&mut self, key: K, delay: Duration, now: Instant) -> bool {
        let back = Return { at: later(now, delay), lane: Lane::Returned, since: None };
        !self.closed && self.delays.put(key, back)
    }

    /// Makes a key in hand come back after `delay` with the age that it had when it was taken, and so
    /// before all younger keys
    pub(crate) fn put_back(&mut self, key: &K, delay: Duration, now: Instant) -> bool {
        let since = Some(self.state.age(key).unwrap_or(now));
        let back = Return { at: later(now, delay), lane: Lane::Added, since };
        !self.closed && self.delays.put(key.clone(), back)
    }

    /// Keeps a key in hand away after a panic; until when, and whether that is the first deadline.
    pub(crate) fn quarantine(&mut self, key: &K, now: Instant) -> (Instant, bool) {
        let until = self.quarantine.enter(key, now);
        // Whatever else it waited for comes with the end of its quarantine.
        self.state.withdraw(key);
        self.delays.remove(key);
        (until, self.hold(key.clone(), until))
    }

    /// The key was handled without a panic.
    pub(crate) fn clear_record(&mut self, key: &K) {
        self.quarantine.leave(key);
    }

    /// Makes every key due whose time has come, and calls `added` for each.
    pub(crate) fn release(&mut self, now: Instant, mut added: impl FnMut(&Added)) {
        while let Some((key, back)) = self.delays.pop(now) {
            added(&self.make_due(key, back.lane, back.since.unwrap_or(back.at), now));
        }
    }

    pub(crate) fn take(&mut self, now: Instant) -> Taken<K> {
        self.state.take(now)
    }

    pub(crate) fn done(&mut self, key: &K, now: Instant) -> (Duration, bool) {
        self.state.done(key, now)
    }

    /// Drops what waits and takes nothing in any more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.state.clear();
        self.delays.clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// When the next key comes back.
    pub(crate) fn next_return(&self) -> Option<Instant> {
        self.delays.next()
    }

    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    pub(crate) fn quarantined(&self) -> usize {
        self.quarantine.len()
    }

    /// How long each key in hand has been worked on.
    pub(crate) fn running(&self, now: Instant) -> impl Iterator<Item = Duration> {
        self.state.running(now)
    }

    fn make_due(&mut self, key: K, lane: Lane, since: Instant, now: Instant) -> Added {
        if self.closed {
            return Added::Known;
        }
        if let Some(until) = self.quarantine.until(&key, now) {
            self.hold(key, until);
            return Added::Known;
        }
        self.state.add(key, lane, since, now)
    }

    fn hold(&mut self, key: K, until: Instant) -> bool {
        let back = Return { at: until, lane: Lane::Returned, since: None };
        !self.closed && self.delays.put(key, back)
    }
}

fn later(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay).unwrap_or_else(|| now + NEVER)
}

/// How a key comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Return {
    pub(crate) at: Instant,
    pub(crate) lane: Lane,
    /// The age with which it joins its lane; its time when absent.
    pub(crate) since: Option<Instant>,
}

/// Sort key of delayed keys: by time, and by arrival among those of one time.
type ReturnOrder = (Instant, u64);

pub(crate) struct Delays<K> {
    due: HashMap<K, (Return, ReturnOrder)>,
    by_time: BTreeMap<ReturnOrder, K>,
    arrivals: u64,
}

impl<K: Key> Delays<K> {
    pub(crate) fn new() -> Self {
        Self { due: HashMap::new(), by_time: BTreeMap::new(), arrivals: 0 }
    }

    /// Makes the key come back so unless it comes sooner. True when this is now the first
    /// deadline of all, so that whoever sleeps until the first must look again.
    pub(crate) fn put(&mut self, key: K, back: Return) -> bool {
        if self.due.get(&key).is_some_and(|(sooner, _)| sooner.at <= back.at) {
            return false;
        }
        self.remove(&key);
        let first = self.next().is_none_or(|next| back.at < next);
        let order = (back.at, self.arrivals);
        self.arrivals += 1;
        self.by_time.insert(order, key.clone());
        self.due.insert(key, (back, order));
        first
    }

    /// Takes one key that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(K, Return)> {
        let key = self.by_time.first_entry().filter(|first| first.key().0 <= now)?.remove();
        let (back, _) = self.due.remove(&key)?;
        Some((key, back))
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    /// The key comes back no more.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some((_, order)) = self.due.remove(key) {
            self.by_time.remove(&order);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.by_time.clear();
    }
}

pub(crate) struct Failures<K> {
    backoff: Backoff,
    in_a_row: HashMap<K, u32>,
}

impl<K: Key> Failures<K> {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { backoff, in_a_row: HashMap::new() }
    }

    /// Counts a failure of the key; returns how long it waits.
    pub(crate) fn count(&mut self, key: &K) -> Duration {
        let before = self.in_a_row.entry(key.clone()).or_insert(0);
        let wait = self.backoff.delay(*before);
        *before = before.saturating_add(1);
        wait
    }

    pub(crate) fn of(&self, key: &K) -> u32 {
        self.in_a_row.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn forget(&mut self, key: &K) {
        self.in_a_row.remove(key);
    }
}

/// How long a key is kept away after its n-th panic in a row.
const TERMS: Backoff =
    Backoff::doubling(Duration::from_secs(30), Duration::from_secs(300), Jitter::None);

struct Record {
    panics: u32,
    until: Instant,
}

/// Keys in quarantine, with their end.
pub(crate) struct Quarantine<K> {
    records: HashMap<K, Record>,
}

impl<K: Key> Quarantine<K> {
    pub(crate) fn new() -> Self {
        Self { records: HashMap::new() }
    }

    /// A panic at this key; returns until when it is kept away.
    pub(crate) fn enter(&mut self, key: &K, now: Instant) -> Instant {
        let record = self.records.entry(key.clone()).or_insert(Record { panics: 0, until: now });
        record.until = now + TERMS.delay(record.panics);
        record.panics += 1;
        record.until
    }

    /// Until when the key is kept away; none when it is free.
    pub(crate) fn until(&self, key: &K, now: Instant) -> Option<Instant> {
        self.records.get(key).map(|record| record.until).filter(|until| *until > now)
    }

    /// The key was handled without a panic.
    pub(crate) fn leave(&mut self, key: &K) {
        self.records.remove(key);
    }

    /// Keys that panicked when they were last handled.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}

#[cfg(test)]
pub(crate) mod tests;
