//! [`Schedule`]: every key that is due, in hand, comes later, or is kept away, as one plain value.
//! `queue.rs` holds it under its lock.

use std::time::Duration;

use tokio::time::Instant;

use crate::delays::{Delays, Quarantine, Return};
use crate::key::Key;
use crate::state::{Added, Lane, State, Taken};

/// A time no process lives to see, for waits that overflow the clock.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

pub(crate) struct Schedule<K> {
    state: State<K>,
    delays: Delays<K>,
    quarantine: Quarantine<K>,
    closed: bool,
}

impl<K: Key> Schedule<K> {
    pub(crate) fn new() -> Self {
        Self {
            state: State::new(),
            delays: Delays::new(),
            quarantine: Quarantine::new(),
            closed: false,
        }
    }

    /// Makes the key due now. One that is kept away comes when its time is over.
    pub(crate) fn add(&mut self, key: K, now: Instant) -> Added {
        self.make_due(key, Lane::Added, now, now)
    }

    /// Makes the key come back after `delay`. True when this is the first deadline of all.
    pub(crate) fn add_later(&mut self, key: K, delay: Duration, now: Instant) -> bool {
        let back = Return { at: later(now, delay), lane: Lane::Returned, since: None };
        !self.closed && self.delays.put(key, back)
    }

    /// Makes a key in hand come back after `delay` with the age that it had when it was taken, and so
    /// before all younger keys
    pub(crate) fn put_back(&mut self, key: &K, delay: Duration, now: Instant) -> bool {
        let since = Some(self.state.age(key).unwrap_or(now));
        let back = Return { at: later(now, delay), lane: Lane::Added, since };
        !self.closed && self.delays.put(key.clone(), back)
    }

    /// Keeps a key in hand away after a panic; until when, and whether that is the first deadline.
    pub(crate) fn quarantine(&mut self, key: &K, now: Instant) -> (Instant, bool) {
        let until = self.quarantine.enter(key, now);
        // Whatever else it waited for comes with the end of its quarantine.
        self.state.withdraw(key);
        self.delays.remove(key);
        (until, self.hold(key.clone(), until))
    }

    /// The key was handled without a panic.
    pub(crate) fn clear_record(&mut self, key: &K) {
        self.quarantine.leave(key);
    }

    /// Makes every key due whose time has come, and calls `added` for each.
    pub(crate) fn release(&mut self, now: Instant, mut added: impl FnMut(&Added)) {
        while let Some((key, back)) = self.delays.pop(now) {
            added(&self.make_due(key, back.lane, back.since.unwrap_or(back.at), now));
        }
    }

    pub(crate) fn take(&mut self, now: Instant) -> Taken<K> {
        self.state.take(now)
    }

    pub(crate) fn done(&mut self, key: &K, now: Instant) -> (Duration, bool) {
        self.state.done(key, now)
    }

    /// Drops what waits and takes nothing in any more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.state.clear();
        self.delays.clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// When the next key comes back.
    pub(crate) fn next_return(&self) -> Option<Instant> {
        self.delays.next()
    }

    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    pub(crate) fn quarantined(&self) -> usize {
        self.quarantine.len()
    }

    /// How long each key in hand has been worked on.
    pub(crate) fn running(&self, now: Instant) -> impl Iterator<Item = Duration> {
        self.state.running(now)
    }

    fn make_due(&mut self, key: K, lane: Lane, since: Instant, now: Instant) -> Added {
        if self.closed {
            return Added::Known;
        }
        if let Some(until) = self.quarantine.until(&key, now) {
            self.hold(key, until);
            return Added::Known;
        }
        self.state.add(key, lane, since, now)
    }

    fn hold(&mut self, key: K, until: Instant) -> bool {
        let back = Return { at: until, lane: Lane::Returned, since: None };
        !self.closed && self.delays.put(key, back)
    }
}

fn later(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay).unwrap_or_else(|| now + NEVER)
}

#[cfg(test)]
mod tests;
