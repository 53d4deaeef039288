//! Answers of the past, bounded in number: what was not used for longest is forgotten first.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

/// A question as a hash: nothing of what it holds is kept.
pub(crate) type Key = [u8; 32];

/// At most `capacity` answers. Every operation is logarithmic in their number at worst.
#[derive(Debug)]
pub(crate) struct Memory<V> {
    capacity: usize,
    clock: u64,
    answers: HashMap<Key, Kept<V>>,
    /// Keys by last use, oldest first.
    uses: BTreeMap<u64, Key>,
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    given: Instant,
    used: u64,
}

impl<V: Clone> Memory<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, clock: 0, answers: HashMap::new(), uses: BTreeMap::new() }
    }

    /// The answer when it was given less than `life` ago.
    pub(crate) fn get(&mut self, key: &Key, life: Duration) -> Option<V> {
        let kept = self.answers.get_mut(key).filter(|kept| kept.given.elapsed() < life)?;
        self.uses.remove(&kept.used);
        self.clock += 1;
        kept.used = self.clock;
        self.uses.insert(self.clock, *key);
        Some(kept.value.clone())
    }

    /// Keeps an answer that was given just now.
    pub(crate) fn insert(&mut self, key: Key, value: V) {
        self.remove(&key);
        if self.answers.len() >= self.capacity
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.answers.remove(&oldest);
        }
        self.clock += 1;
        self.uses.insert(self.clock, key);
        self.answers.insert(key, Kept { value, given: Instant::now(), used: self.clock });
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        if let Some(kept) = self.answers.remove(key) {
            self.uses.remove(&kept.used);
        }
    }
}

#[cfg(test)]
mod tests;
