//! [`PanicLimit`]: decides which contained panics are logged, and when the controller is restarted
//! because of them (rule:quarantine-after-panic).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::IntCounter;
use resilience::KeyedLogGate;
use resilience::panics::Panic;
use tokio::time::Instant;

/// The window in which different keys are counted, and in which one place is logged once.
const WINDOW: Duration = Duration::from_secs(60);
/// Different keys in the window that lead to the first fresh start.
const FIRST_LIMIT: u32 = 5;
/// A key that did not panic for so long is new again. Longer than any quarantine.
const MEMORY: Duration = Duration::from_secs(3600);

/// The panics of one controller, kept over its fresh starts; clones share it.
#[derive(Clone)]
pub struct PanicLimit {
    inner: Arc<Inner>,
}

struct Inner {
    counter: IntCounter,
    /// By place.
    shown: KeyedLogGate<String>,
    seen: Mutex<Seen>,
}

struct Seen {
    /// Keys that panicked, and when they last did.
    keys: HashMap<String, Instant>,
    /// First panics of different keys in the window.
    recent: Vec<Instant>,
    limit: u32,
}

/// Consequences of a panic.
pub struct PanicConsequence {
    /// Log it; so many of this place were not, since the last that was.
    pub show: Option<u64>,
    /// Whether so many different keys panicked that the controller is restarted.
    pub exceeded: bool,
}

impl PanicLimit {
    /// Counts every panic in `counter`.
    pub fn new(counter: IntCounter) -> Self {
        let seen = Seen { keys: HashMap::new(), recent: Vec::new(), limit: FIRST_LIMIT };
        let shown = KeyedLogGate::new(WINDOW);
        Self { inner: Arc::new(Inner { counter, shown, seen: Mutex::new(seen) }) }
    }

    /// Counts a panic that is not about a key.
    pub fn count(&self) {
        self.inner.counter.inc();
    }

    /// Counts a panic at a key; `key` contains the name of the queue.
    pub fn record(&self, key: String, panic: &Panic) -> PanicConsequence {
        self.count();
        let now = Instant::now();
        let show = self.inner.shown.pass(panic.location.clone(), now);
        PanicConsequence { show, exceeded: self.inner.seen.lock().record(key, now) }
    }
}

impl Seen {
    fn record(&mut self, key: String, now: Instant) -> bool {
        self.keys.retain(|_, at| now.duration_since(*at) < MEMORY);
        self.recent.retain(|at| now.duration_since(*at) < WINDOW);
        if self.keys.is_empty() {
            self.limit = FIRST_LIMIT;
        }
        // A key that panicked before a fresh start and does again is itself the cause.
        if self.keys.insert(key, now).is_none() {
            self.recent.push(now);
        }
        let exceeded = u32::try_from(self.recent.len()).unwrap_or(u32::MAX) >= self.limit;
        if exceeded {
            self.recent.clear();
            self.limit = self.limit.saturating_mul(2);
        }
        exceeded
    }
}

#[cfg(test)]
mod tests;
