//! [`Item`]: the right to work on a key.

use std::ops::Deref;
use std::sync::Arc;

use crate::Key;

/// What an item belongs to: hears when the work on its key is done.
pub(crate) trait Hands<K>: Send + Sync {
    fn done(&self, key: &K);
}

/// A key in hand. While it lives no other worker gets this key; dropping it, also by a panic,
/// says that the work is done.
#[must_use = "dropping the item says that the work is done"]
pub struct Item<K: Key> {
    hands: Arc<dyn Hands<K>>,
    key: K,
}

impl<K: Key> Item<K> {
    pub(crate) fn new(hands: Arc<dyn Hands<K>>, key: K) -> Self {
        Self { hands, key }
    }
}

impl<K: Key> Deref for Item<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        self.hands.done(&self.key);
    }
}
