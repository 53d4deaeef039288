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
mod tests {
    use super::*;

    fn has(lru: &mut Lru<u32, u32>, key: u32) -> bool {
        let mut made = false;
        lru.entry(&key, || {
            made = true;
            key
        });
        !made
    }

    #[test]
    fn the_entry_not_used_for_longest_is_forgotten_first() {
        let mut lru = Lru::new(2);
        lru.entry(&1, || 10);
        lru.entry(&2, || 20);
        lru.entry(&1, || 99); // used again: 2 is the oldest now
        lru.entry(&3, || 30);
        assert_eq!(lru.get(&1), Some(&mut 10));
        assert!(has(&mut lru, 1));
        assert!(has(&mut lru, 3));
        assert!(!has(&mut lru, 2));
    }

    #[test]
    fn a_value_is_kept_and_can_be_changed() {
        let mut lru = Lru::new(2);
        *lru.entry(&1, || 10) += 1;
        assert_eq!(*lru.entry(&1, || 0), 11);
        lru.insert(&1, 12);
        assert_eq!((lru.get(&1).copied(), lru.remove(&1), lru.get(&1)), (Some(12), Some(12), None));
    }

    #[test]
    fn it_never_holds_more_than_its_capacity() {
        let mut lru = Lru::new(16);
        for key in 0..1_000_u32 {
            lru.entry(&(key % 40), || key);
            assert!(lru.entries.len() <= 16);
            assert_eq!(lru.entries.len(), lru.uses.len());
        }
    }
}
