//! [`Item`]: the right to work on a key.

use std::ops::Deref;

use crate::{Key, WorkQueue};

/// A key in hand. While it lives no other worker gets this key; dropping it, also by a panic,
/// says that the work is done.
#[must_use = "dropping the item says that the work is done"]
pub struct Item<K: Key> {
    queue: WorkQueue<K>,
    key: K,
}

impl<K: Key> Item<K> {
    pub(crate) fn new(queue: WorkQueue<K>, key: K) -> Self {
        Self { queue, key }
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
        self.queue.done(&self.key);
    }
}
