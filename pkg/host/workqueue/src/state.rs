//! The keys that are due and the keys in hand, as a plain value without locks or timers.
//!
//! A key is *waiting* from the moment it is added until a worker takes it, and *in hand* from then
//! until the worker is done. A waiting key that is in hand stands in no lane: it joins its lane
//! when the worker is done. That gives both halves of the contract, never twice at once and never
//! missed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// A key of a queue: `Arc<str>` or a small enum. Keys are cloned several times per turn, and
/// displayed as `object` in every line that is logged while they are handled.
pub trait Key: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static> Key for K {}

/// Keys that were added are taken before keys that came back by themselves, but of every
/// `ADDED_IN_A_ROW + 1` keys one is of those that came back.
const ADDED_IN_A_ROW: u32 = 4;

/// A queue that held so many keys, and has a quarter of them left, gives memory back.
const WORTH_SHRINKING: usize = 1024;

/// Why a key is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Somebody added it.
    Added,
    /// The time came for which it was put back.
    Returned,
}

/// Result of [`State::add`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// The key can be taken now.
    Ready,
    /// The key is in hand and comes again after that.
    AfterCurrent,
    /// The key waits already, or may not be added.
    Known,
}

/// Result of [`State::take`].
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

/// Sort key of a lane, which is ordered by age, and by arrival among those of one age.
type LaneOrder = (Moment, u64);

struct Waiting {
    lane: Lane,
    order: LaneOrder,
    /// Since when a worker could have taken it.
    due: Moment,
}

struct InHand {
    taken: Instant,
    /// Age of the key when it was taken.
    since: Instant,
}

pub(crate) struct State<K> {
    epoch: Epoch,
    added: BTreeMap<LaneOrder, K>,
    returned: BTreeMap<LaneOrder, K>,
    waiting: HashMap<K, Waiting>,
    in_hand: HashMap<K, InHand>,
    arrivals: u64,
    added_in_a_row: u32,
}

impl<K: Key> State<K> {
    pub(crate) fn new() -> Self {
        Self {
            epoch: Epoch::now(),
            added: BTreeMap::new(),
            returned: BTreeMap::new(),
            waiting: HashMap::new(),
            in_hand: HashMap::new(),
            arrivals: 0,
            added_in_a_row: 0,
        }
    }

    /// Makes the key due. `since` is its age, by which its lane is ordered; a waiting key keeps
    /// the better of its lanes and the greater of its ages.
    pub(crate) fn add(&mut self, key: K, lane: Lane, since: Instant, now: Instant) -> Added {
        let known = self.leave_lane(&key);
        let (was_known, in_hand) = (known.is_some(), self.in_hand.contains_key(&key));
        let order = (self.epoch.moment(since), self.next_arrival());
        let waiting = match known {
            None => Waiting { lane, order, due: self.epoch.moment(now) },
            Some(before) => Waiting {
                lane: if lane == Lane::Added { lane } else { before.lane },
                order: before.order.min(order),
                due: before.due,
            },
        };
        if !in_hand {
            self.lane(waiting.lane).insert(waiting.order, key.clone());
        }
        self.waiting.insert(key, waiting);
        match (was_known, in_hand) {
            (true, _) => Added::Known,
            (false, true) => Added::AfterCurrent,
            (false, false) => Added::Ready,
        }
    }

    pub(crate) fn take(&mut self, now: Instant) -> Taken<K> {
        let Some(key) = self.pop() else { return Taken::Nothing };
        let (since, due) = self.waiting.remove(&key).map_or((now, now), |waiting| {
            (self.epoch.instant(waiting.order.0), self.epoch.instant(waiting.due))
        });
        if self.waiting.capacity() > WORTH_SHRINKING.max(4 * self.waiting.len()) {
            self.waiting.shrink_to(2 * self.waiting.len());
        }
        self.in_hand.insert(key.clone(), InHand { taken: now, since });
        let more = !(self.added.is_empty() && self.returned.is_empty());
        Taken::Key { key, waited: now.duration_since(due), more }
    }

    /// Ends the work on a key: how long it took, and whether the key is due again.
    pub(crate) fn done(&mut self, key: &K, now: Instant) -> (Duration, bool) {
        let worked =
            self.in_hand.remove(key).map_or(Duration::ZERO, |hand| now.duration_since(hand.taken));
        let Some(waiting) = self.waiting.get(key) else { return (worked, false) };
        let (lane, order) = (waiting.lane, waiting.order);
        self.lane(lane).insert(order, key.clone());
        (worked, true)
    }

    /// The age that a key in hand had when it was taken.
    pub(crate) fn age(&self, key: &K) -> Option<Instant> {
        self.in_hand.get(key).map(|hand| hand.since)
    }

    /// A waiting key waits no more.
    pub(crate) fn withdraw(&mut self, key: &K) {
        self.leave_lane(key);
        self.waiting.remove(key);
    }

    /// Keys to be handled, those behind their own current handling included.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Drops all keys that wait; keys in hand stay until they are done.
    pub(crate) fn clear(&mut self) {
        self.added.clear();
        self.returned.clear();
        self.waiting.clear();
    }

    /// How long each key in hand has been worked on.
    pub(crate) fn running(&self, now: Instant) -> impl Iterator<Item = Duration> {
        self.in_hand.values().map(move |hand| now.duration_since(hand.taken))
    }

    fn pop(&mut self) -> Option<K> {
        let turn_of_returned = self.added_in_a_row >= ADDED_IN_A_ROW || self.added.is_empty();
        if turn_of_returned && let Some((_, key)) = self.returned.pop_first() {
            self.added_in_a_row = 0;
            return Some(key);
        }
        let (_, key) = self.added.pop_first()?;
        self.added_in_a_row = self.added_in_a_row.saturating_add(1);
        Some(key)
    }

    fn lane(&mut self, lane: Lane) -> &mut BTreeMap<LaneOrder, K> {
        match lane {
            Lane::Added => &mut self.added,
            Lane::Returned => &mut self.returned,
        }
    }

    fn leave_lane(&mut self, key: &K) -> Option<Waiting> {
        let Waiting { lane, order, due } = self.waiting.get(key)?;
        let left = Waiting { lane: *lane, order: *order, due: *due };
        self.lane(left.lane).remove(&left.order);
        Some(left)
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}

/// An instant as nanoseconds after the epoch of its queue, or before it. 292 years each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

/// Start of the moments of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(Instant);

impl Epoch {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn moment(self, at: Instant) -> Moment {
        let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Moment(match at.checked_duration_since(self.0) {
            Some(after) => nanos(after),
            None => -nanos(self.0.duration_since(at)),
        })
    }

    pub(crate) fn instant(self, moment: Moment) -> Instant {
        let span = Duration::from_nanos(moment.0.unsigned_abs());
        let at = if moment.0 < 0 { self.0.checked_sub(span) } else { self.0.checked_add(span) };
        at.unwrap_or(self.0)
    }
}

#[cfg(test)]
mod tests;
