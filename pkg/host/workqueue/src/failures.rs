//! Failures of each key in a row, as a plain value.

use std::collections::HashMap;
use std::time::Duration;

use resilience::Backoff;

use crate::Key;

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
