//! Keys that become due later, as a plain value. The earliest of several times for one key wins.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tokio::time::Instant;

use crate::Key;
use crate::state::Lane;

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

/// How a key comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Return {
    pub(crate) at: Instant,
    pub(crate) lane: Lane,
    /// The age with which it joins its lane; its time when absent.
    pub(crate) since: Option<Instant>,
}

pub(crate) struct Delays<K> {
    /// The truth: when and how each key comes back.
    due: HashMap<K, Return>,
    /// Every time ever set and not yet passed. An entry that `due` does not confirm was overtaken
    /// by an earlier one and is skipped, which is cheaper than finding it in the heap.
    heap: BinaryHeap<Reverse<Entry<K>>>,
    arrivals: u64,
}

impl<K: Key> Delays<K> {
    pub(crate) fn new() -> Self {
        Self { due: HashMap::new(), heap: BinaryHeap::new(), arrivals: 0 }
    }

    /// Makes the key come back so unless it comes sooner. True when this is now the first
    /// deadline of all, so that whoever sleeps until the first must look again.
    pub(crate) fn put(&mut self, key: K, back: Return) -> bool {
        if self.due.get(&key).is_some_and(|sooner| sooner.at <= back.at) {
            return false;
        }
        let first = self.next().is_none_or(|next| back.at < next);
        self.due.insert(key.clone(), back);
        self.heap.push(Reverse(Entry { at: back.at, arrival: self.arrivals, key }));
        self.arrivals += 1;
        first
    }

    /// Takes one key that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(K, Return)> {
        while let Some(Reverse(first)) = self.heap.peek() {
            if first.at > now {
                return None;
            }
            let Reverse(Entry { at, key, .. }) = self.heap.pop()?;
            if self.due.get(&key).is_some_and(|back| back.at == at)
                && let Some(back) = self.due.remove(&key)
            {
                return Some((key, back));
            }
        }
        None
    }

    /// When to look again. May be the time of an overtaken entry; waking for it is harmless.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(first)| first.at)
    }

    /// The key comes back no more.
    pub(crate) fn remove(&mut self, key: &K) {
        self.due.remove(key);
    }

    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests;
