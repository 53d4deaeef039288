//! When keys come back, as plain values: at the earliest of several times, after failures in a row, and
//! after panics (rule:quarantine-after-panic).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use resilience::{Backoff, Jitter};
use tokio::time::Instant;

use crate::key::Key;
use crate::state::Lane;

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
mod tests;
