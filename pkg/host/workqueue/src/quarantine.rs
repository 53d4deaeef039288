//! Keys whose handler panicked, as a plain value (rule:quarantine-after-panic).

use std::collections::HashMap;
use std::time::Duration;

use resilience::{Backoff, Jitter};
use tokio::time::Instant;

use crate::Key;

/// How long a key is kept away after its n-th panic in a row.
const TERMS: Backoff =
    Backoff::doubling(Duration::from_secs(30), Duration::from_secs(300), Jitter::None);

struct Record {
    panics: u32,
    until: Instant,
}

/// Which keys may not be handed out, and until when.
pub(crate) struct Quarantine<K> {
    records: HashMap<K, Record>,
}

impl<K: Key> Quarantine<K> {
    pub(crate) fn new() -> Self {
        Self { records: HashMap::new() }
    }

    /// A panic at this key; returns until when it is kept away.
    pub(crate) fn enter(&mut self, key: &K, now: Instant) -> Instant {
        let record = self.records.entry(key.clone()).or_insert(Record { panics: 0, until: now });
        record.until = now + TERMS.delay(record.panics);
        record.panics += 1;
        record.until
    }

    /// Until when the key is kept away; none when it is free.
    pub(crate) fn until(&self, key: &K, now: Instant) -> Option<Instant> {
        self.records.get(key).map(|record| record.until).filter(|until| *until > now)
    }

    /// The key was handled without a panic.
    pub(crate) fn leave(&mut self, key: &K) {
        self.records.remove(key);
    }

    /// Keys that panicked when they were last handled.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}
