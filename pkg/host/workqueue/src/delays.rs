//! Keys that become due later, as a plain value. The earliest of several times for one key wins.

use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use crate::Key;
use crate::state::Lane;

/// How a key comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Return {
    pub(crate) at: Instant,
    pub(crate) lane: Lane,
    /// The age with which it joins its lane; its time when absent.
    pub(crate) since: Option<Instant>,
}

/// Place in the line: by time, and by arrival among those of one time.
type Place = (Instant, u64);

pub(crate) struct Delays<K> {
    due: HashMap<K, (Return, Place)>,
    line: BTreeMap<Place, K>,
    arrivals: u64,
}

impl<K: Key> Delays<K> {
    pub(crate) fn new() -> Self {
        Self { due: HashMap::new(), line: BTreeMap::new(), arrivals: 0 }
    }

    /// Makes the key come back so unless it comes sooner. True when this is now the first
    /// deadline of all, so that whoever sleeps until the first must look again.
    pub(crate) fn put(&mut self, key: K, back: Return) -> bool {
        if self.due.get(&key).is_some_and(|(sooner, _)| sooner.at <= back.at) {
            return false;
        }
        self.remove(&key);
        let first = self.next().is_none_or(|next| back.at < next);
        let place = (back.at, self.arrivals);
        self.arrivals += 1;
        self.line.insert(place, key.clone());
        self.due.insert(key, (back, place));
        first
    }

    /// Takes one key that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(K, Return)> {
        let key = self.line.first_entry().filter(|first| first.key().0 <= now)?.remove();
        let (back, _) = self.due.remove(&key)?;
        Some((key, back))
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.line.first_key_value().map(|((at, _), _)| *at)
    }

    /// The key comes back no more.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some((_, place)) = self.due.remove(key) {
            self.line.remove(&place);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.line.clear();
    }
}

#[cfg(test)]
mod tests;
