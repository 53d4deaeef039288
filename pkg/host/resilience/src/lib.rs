//! Building blocks that keep a failure small: waits after failures, rate limits, log
//! gates, bounded maps, contained panics, and the fence that stops writes without the lease. No task of its own; except for the fence, callers pass
//! the time in, so tests use a paused clock.
//!
//! | file | holds | used by |
//! |---|---|---|
//! | `backoff.rs` | [`Backoff`], [`Series`]: waits after failures; [`draw`]: random numbers that spread waits | work queues, informers, the supervisor |
//! | `token_bucket.rs` | [`TokenBucket`]: a rate limit | clients, writers of statuses, events |
//! | `lru.rs` | [`Lru`]: a bounded map | events, caches of reviews and of answers |
//! | `panics.rs` | [`panics::contain`]: turns a panic into an error | work queues, the manager |
//! | `fence.rs` | [`Fence`]: no write without the lease; [`BootInstant`]: its clock | election, clients |
//! | `halt.rs` | [`task`]: the work of a task; [`wall_now`]: the wall clock; [`Halt`]: lets a simulated process stand still | all that spawn tasks or write times |
//! | here | [`LogGate`], [`KeyedLogGate`]: one line per interval, the rest counted | all that log failures |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod backoff;
mod fence;
mod halt;
mod lru;
pub mod panics;
mod token_bucket;

/// Atomics of the fence. `tests/memory-orders` compiles it with those of loom.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use backoff::{Backoff, Jitter, Series, draw, seed_draws};
pub use fence::{BootInstant, ClockReading, Fence, Fenced, ReadClocks};
pub use halt::{Halt, Task, is_simulated, task, wall_now};
pub use lru::Lru;
pub use token_bucket::{Rate, TokenBucket};

/// Lets one line pass per interval. Can be a `static`.
#[derive(Debug)]
pub struct LogGate {
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    passed: Option<Instant>,
    suppressed: u64,
}

impl State {
    const NEW: Self = Self { passed: None, suppressed: 0 };

    fn pass(&mut self, now: Instant, interval: Duration) -> Option<u64> {
        if self.is_recent(now, interval) {
            self.suppressed = self.suppressed.saturating_add(1);
            return None;
        }
        self.passed = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }

    fn is_recent(&self, now: Instant, interval: Duration) -> bool {
        self.passed.is_some_and(|passed| now.saturating_duration_since(passed) < interval)
    }
}

impl LogGate {
    /// The first line passes.
    pub const fn new(interval: Duration) -> Self {
        Self { interval, state: Mutex::new(State::NEW) }
    }

    /// Asks for a line at `now`: `Some` lets it pass, with the number of lines suppressed since the
    /// last one that passed.
    pub fn pass(&self, now: impl Into<Instant>) -> Option<u64> {
        self.state.lock().pass(now.into(), self.interval)
    }

    /// Lets the next line pass whenever it comes. True when a line has passed since the last
    /// reset: the end of that failure may be worth a line, too.
    pub fn reset(&self) -> bool {
        std::mem::replace(&mut *self.state.lock(), State::NEW).passed.is_some()
    }
}

/// A [`LogGate`] per key. Forgets keys that asked for no line during an interval.
#[derive(Debug)]
pub struct KeyedLogGate<K> {
    interval: Duration,
    states: Mutex<HashMap<K, State>>,
}

impl<K: Eq + Hash> KeyedLogGate<K> {
    /// The first line of every key passes.
    pub fn new(interval: Duration) -> Self {
        Self { interval, states: Mutex::default() }
    }

    /// Whether a line about `key` may be logged now, as [`LogGate::pass`] says for one key.
    pub fn pass(&self, key: K, now: impl Into<Instant>) -> Option<u64> {
        let (now, mut states) = (now.into(), self.states.lock());
        if !states.contains_key(&key) {
            states.retain(|_, state| state.is_recent(now, self.interval));
        }
        states.entry(key).or_insert(State::NEW).pass(now, self.interval)
    }
}

#[cfg(test)]
mod tests;
