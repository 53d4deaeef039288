//! [`Shared`]: values that are alike are one value, for as long as somebody holds it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A hash of everything that a value is made of.
pub(super) type Key = [u8; 32];

/// The values in use, by key.
#[derive(Debug)]
pub(super) struct Shared<T> {
    in_use: Mutex<HashMap<Key, Weak<T>>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { in_use: Mutex::default() }
    }
}

impl<T> Shared<T> {
    /// The value of `key` that is in use, or what `make` makes. Two callers may make it at the same
    /// time; then the values are alike and not one, which costs memory and nothing else.
    pub(super) fn get_or_make<E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(value) = self.in_use.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(value);
        }
        let value = Arc::new(make()?);
        let mut in_use = self.in_use.lock();
        // Only when the map would grow, so that many values cost no more than a few.
        if in_use.len() == in_use.capacity() {
            in_use.retain(|_, value| value.strong_count() > 0);
        }
        in_use.insert(key, Arc::downgrade(&value));
        Ok(value)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.in_use.lock().len()
    }
}
