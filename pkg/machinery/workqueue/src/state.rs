//! The keys that wait and the keys in hand, as a plain value without locks or timers.
//!
//! A key is *dirty* from the moment it is added until a worker takes it, and *in hand* from then
//! until the worker is done. A dirty key that is in hand is not in the order: it joins the order
//! when the worker is done. That rule gives both halves of the contract, never twice at once and
//! never missed.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::Key;

/// What [`State::add`] did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// The key can be taken now.
    Ready,
    /// The key is in hand and comes again after that.
    AfterCurrent,
    /// The key waits already.
    Known,
}

/// What [`State::take`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<K> {
    /// This key, after it waited so long; `more` keys are left.
    Key {
        key: K,
        waited: Duration,
        more: bool,
    },
    Nothing,
}

pub(crate) struct State<K> {
    order: VecDeque<K>,
    dirty: HashMap<K, Instant>,
    in_hand: HashMap<K, Instant>,
}

impl<K: Key> State<K> {
    pub(crate) fn new() -> Self {
        Self { order: VecDeque::new(), dirty: HashMap::new(), in_hand: HashMap::new() }
    }

    pub(crate) fn add(&mut self, key: K, now: Instant) -> Added {
        if self.dirty.contains_key(&key) {
            return Added::Known;
        }
        self.dirty.insert(key.clone(), now);
        if self.in_hand.contains_key(&key) {
            return Added::AfterCurrent;
        }
        self.order.push_back(key);
        Added::Ready
    }

    pub(crate) fn take(&mut self, now: Instant) -> Taken<K> {
        let Some(key) = self.order.pop_front() else { return Taken::Nothing };
        let added = self.dirty.remove(&key).unwrap_or(now);
        self.in_hand.insert(key.clone(), now);
        Taken::Key { key, waited: now.duration_since(added), more: !self.order.is_empty() }
    }

    /// Ends the work on a key: how long it took, and whether the key is due again.
    pub(crate) fn done(&mut self, key: &K, now: Instant) -> (Duration, bool) {
        let worked = self.in_hand.remove(key).map_or(Duration::ZERO, |at| now.duration_since(at));
        let again = self.dirty.contains_key(key);
        if again {
            self.order.push_back(key.clone());
        }
        (worked, again)
    }

    /// Keys to be handled, those behind their own current handling included.
    pub(crate) fn len(&self) -> usize {
        self.dirty.len()
    }

    /// Drops all keys that wait; keys in hand stay until they are done.
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.dirty.clear();
    }

    /// How long each key in hand has been worked on.
    pub(crate) fn running(&self, now: Instant) -> impl Iterator<Item = Duration> {
        self.in_hand.values().map(move |at| now.duration_since(*at))
    }
}
