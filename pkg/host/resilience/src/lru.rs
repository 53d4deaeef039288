//! [`Lru`]: a map that forgets what was not used for longest.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// At most `capacity` entries. Every operation is logarithmic in their number at worst.
#[derive(Debug)]
pub struct Lru<K, V> {
    capacity: usize,
    clock: u64,
    entries: HashMap<K, (u64, V)>,
    /// Keys by last use, oldest first.
    uses: BTreeMap<u64, K>,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    /// `capacity` must be positive; a smaller one counts as 1.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { capacity, clock: 0, entries: HashMap::new(), uses: BTreeMap::new() }
    }

    /// The value of `key`, made by `new` when absent, and used just now.
    pub fn entry(&mut self, key: &K, new: impl FnOnce() -> V) -> &mut V {
        match self.entries.get(key).map(|(used, _)| *used) {
            Some(used) => drop(self.uses.remove(&used)),
            None if self.entries.len() >= self.capacity => drop(self.pop_oldest()),
            None => {}
        }
        self.clock += 1;
        self.uses.insert(self.clock, key.clone());
        let (used, value) = self.entries.entry(key.clone()).or_insert_with(|| (0, new()));
        *used = self.clock;
        value
    }

    /// The value of `key`, used just now.
    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (used, value) = self.entries.get_mut(key)?;
        self.clock += 1;
        let key = self.uses.remove(used)?;
        self.uses.insert(self.clock, key);
        *used = self.clock;
        Some(value)
    }

    /// Sets the value of `key`, used just now.
    pub fn insert(&mut self, key: &K, value: V) {
        self.remove(key);
        self.entry(key, || value);
    }

    /// Forgets `key`. Its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (used, value) = self.entries.remove(key)?;
        self.uses.remove(&used);
        Some(value)
    }

    /// Forgets the entry that was not used for longest. Its value.
    pub fn pop_oldest(&mut self) -> Option<V> {
        let (_, oldest) = self.uses.pop_first()?;
        self.entries.remove(&oldest).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
