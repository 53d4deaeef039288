//! Keys that become due later, as a plain value. The earliest of several times for one key wins.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tokio::time::Instant;

use crate::Key;

/// One entry of the heap, ordered by time and then by arrival; the key takes no part.
struct Entry<K> {
    at: Instant,
    arrival: u64,
    key: K,
}

impl<K> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K> Eq for Entry<K> {}

impl<K> PartialOrd for Entry<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Entry<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.arrival).cmp(&(other.at, other.arrival))
    }
}

pub(crate) struct Delays<K> {
    /// The truth: when each key is due.
    due: HashMap<K, Instant>,
    /// Every time ever set and not yet passed. An entry that `due` does not confirm was overtaken
    /// by an earlier one and is skipped, which is cheaper than finding it in the heap.
    heap: BinaryHeap<Reverse<Entry<K>>>,
    arrivals: u64,
}

impl<K: Key> Delays<K> {
    pub(crate) fn new() -> Self {
        Self { due: HashMap::new(), heap: BinaryHeap::new(), arrivals: 0 }
    }

    /// Makes the key due at that time unless it is due sooner. True when this is now the first
    /// deadline of all, so that whoever sleeps until the first must look again.
    pub(crate) fn put(&mut self, key: K, at: Instant) -> bool {
        if self.due.get(&key).is_some_and(|sooner| *sooner <= at) {
            return false;
        }
        let first = self.next().is_none_or(|next| at < next);
        self.due.insert(key.clone(), at);
        self.heap.push(Reverse(Entry { at, arrival: self.arrivals, key }));
        self.arrivals += 1;
        first
    }

    /// Takes one key that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        while let Some(Reverse(first)) = self.heap.peek() {
            if first.at > now {
                return None;
            }
            let Reverse(Entry { at, key, .. }) = self.heap.pop()?;
            if self.due.get(&key) == Some(&at) {
                self.due.remove(&key);
                return Some(key);
            }
        }
        None
    }

    /// When to look again. May be the time of an overtaken entry; waking for it is harmless.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(first)| first.at)
    }

    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.heap.clear();
    }
}
