//! [`WriteQueue`]: the status writes that wait, at most one per cluster, none lost.
//!
//! The newest state of a cluster takes the place of an older one that waits, keeps its turn, and
//! waits out the backoff of the other; so a server that refuses for an hour is not asked more
//! often, and then gets the truth of now instead of an hour of history.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::Urgency;

/// First wait after a failed write, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_CAP: Duration = Duration::from_secs(30);
/// A failed write waits longer by this for each other one that waits: 400 retries per second while a
/// server refuses the writes of thousands of clusters.
const SPACING: Duration = Duration::from_millis(5);

/// The lane in which a key waits for its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Change,
    /// Thousands of them come after a start, and none of them is news.
    FirstResult,
    Heartbeat,
    /// The write was refused more than once in a row: a retry of it is rarely worth more than the
    /// news of another cluster.
    Refused,
    /// A change of an object that is not a cluster; one cluster may have thousands of them.
    OtherChange,
    /// Any other write of an object that is not a cluster.
    OtherRest,
    /// A cluster that is published as unknown because this process is cut off: behind all others.
    Partition,
}

const LANES: usize = 7;

/// Order in which the lanes are served, turn by turn: no lane waits indefinitely behind another
/// (`rule:refused-writes-delay-no-others`).
const TURNS: [[Lane; LANES]; 12] = {
    use Lane::{Change, FirstResult, Heartbeat, OtherChange, OtherRest, Partition, Refused};
    let changes = [Change, FirstResult, Heartbeat, Refused, OtherChange, OtherRest, Partition];
    let first_results =
        [FirstResult, Change, Heartbeat, Refused, OtherChange, OtherRest, Partition];
    let refused = [Refused, Change, FirstResult, Heartbeat, OtherChange, OtherRest, Partition];
    let heartbeats = [Heartbeat, Change, FirstResult, Refused, OtherChange, OtherRest, Partition];
    let others = [OtherChange, OtherRest, Change, FirstResult, Heartbeat, Refused, Partition];
    let rest = [OtherRest, OtherChange, Change, FirstResult, Heartbeat, Refused, Partition];
    [
        changes,
        refused,
        changes,
        others,
        changes,
        heartbeats,
        changes,
        refused,
        changes,
        rest,
        changes,
        first_results,
    ]
};

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The server took it.
    Done,
    /// Somebody else changed the object: read it again and write once more.
    Conflict,
    /// The server has too much to do, and asks for a retry after this time. It says nothing about
    /// the write: it keeps its lane.
    Throttled {
        /// `Retry-After`.
        retry_after: Duration,
    },
    /// Refused or lost, for whatever reason.
    Failed,
    /// The object no longer exists.
    Gone,
}

/// Pending writes of clusters known by `K`. Every operation takes logarithmic time.
#[derive(Debug)]
pub struct WriteQueue<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Keys that may be written now, by [`Lane`].
    ready: [VecDeque<(u64, K)>; LANES],
    /// Writes taken so far.
    turns: usize,
    /// Keys that wait out a backoff.
    waiting: BTreeMap<(Instant, u64), K>,
    /// Keys that were forgotten while their write was under way.
    ending: HashSet<K>,
    tickets: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    urgency: Urgency,
    /// Since when something waits to be written.
    since: Instant,
    failures: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// In a lane, with this ticket; an older ticket of the key is void.
    Ready(u64),
    Waiting(Instant, u64),
    /// Being written. A newer value may have come meanwhile, since then.
    Writing {
        newer_since: Option<Instant>,
    },
}

impl<K, V> Default for WriteQueue<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            ready: Default::default(),
            turns: 0,
            waiting: BTreeMap::new(),
            ending: HashSet::new(),
            tickets: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> WriteQueue<K, V> {
    /// Wants `value` written: the newest wins (`rule:newest-state-is-written`).
    pub fn submit(&mut self, key: K, value: V, urgency: Urgency, now: Instant) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return self.insert(key, value, urgency, now);
        };
        entry.value = value;
        match &mut entry.stage {
            Stage::Writing { newer_since } => {
                newer_since.get_or_insert(now);
                entry.urgency = urgency;
            }
            Stage::Ready(_) if urgency > entry.urgency => {
                let before = entry.lane();
                entry.urgency = urgency;
                if entry.lane() != before {
                    self.enter_lane(key);
                }
            }
            Stage::Ready(_) | Stage::Waiting(..) => entry.urgency = entry.urgency.max(urgency),
        }
    }

    /// Takes the next write whose turn has come; [`WriteQueue::finish`] must follow. A cluster has
    /// one write under way at most.
    pub fn next(&mut self, now: Instant) -> Option<(K, V)> {
        self.wake(now);
        for lane in TURNS[self.turns % TURNS.len()] {
            while let Some((ticket, key)) = self.ready[lane as usize].pop_front() {
                if let Some(entry) = self.entries.get_mut(&key)
                    && entry.stage == Stage::Ready(ticket)
                {
                    entry.stage = Stage::Writing { newer_since: None };
                    self.turns = self.turns.wrapping_add(1);
                    return Some((key, entry.value.clone()));
                }
            }
        }
        None
    }

    /// When [`WriteQueue::next`] may have something again; `None` when only a new entry can change
    /// that.
    pub fn next_at(&self, now: Instant) -> Option<Instant> {
        if self.ready.iter().any(|lane| !lane.is_empty()) {
            return Some(now);
        }
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes in what came of a write. One that failed waits for `longest` at most, a period of its
    /// cluster, or for longer while many wait. `draw` is a random number in `[0, 1)` (`rule:writes-are-retried-until-done`).
    pub fn finish(
        &mut self,
        key: &K,
        written: Written,
        now: Instant,
        longest: Duration,
        draw: f64,
    ) {
        let draw = draw.clamp(0.0, 1.0);
        let spacing = self.spacing();
        let Some(entry) = self.entries.get_mut(key) else {
            self.ending.remove(key);
            return;
        };
        let Stage::Writing { newer_since } = entry.stage else { return };
        match (written, newer_since) {
            (Written::Gone, _) | (Written::Done, None) => {
                self.entries.remove(key);
            }
            (Written::Done, Some(since)) => {
                (entry.failures, entry.since) = (0, since);
                self.enter_lane(key.clone());
            }
            (Written::Conflict, _) if entry.failures == 0 => {
                entry.failures = 1;
                self.enter_lane(key.clone());
            }
            (Written::Conflict | Written::Failed, _) => {
                let longest_wait = backoff(entry.failures).min(longest).max(spacing);
                entry.failures = entry.failures.saturating_add(1);
                self.wait(key, now + longest_wait.mul_f64(draw));
            }
            (Written::Throttled { retry_after }, _) => {
                let spread = BACKOFF_FIRST.max(spacing).mul_f64(draw);
                self.wait(key, now + retry_after.min(longest) + spread);
            }
        }
    }

    /// The cluster is gone, or given up: nothing of it is written any more but what is under way.
    pub fn forget(&mut self, key: &K) {
        match self.entries.remove(key).map(|entry| entry.stage) {
            Some(Stage::Waiting(at, ticket)) => {
                self.waiting.remove(&(at, ticket));
            }
            Some(Stage::Writing { .. }) => {
                self.ending.insert(key.clone());
            }
            Some(Stage::Ready(_)) | None => {}
        }
    }

    /// Whether a write of `key` is under way, one that was forgotten included: what its object says
    /// may change yet.
    pub fn is_writing(&self, key: &K) -> bool {
        let entry = self.entries.get(key);
        let writing = entry.is_some_and(|entry| matches!(entry.stage, Stage::Writing { .. }));
        writing || self.ending.contains(key)
    }

    /// For how long `key` has had something to write.
    pub fn age(&self, key: &K, now: Instant) -> Option<Duration> {
        self.entries.get(key).map(|entry| now.saturating_duration_since(entry.since))
    }

    /// For how long the oldest entry has waited. Looks at all of them.
    pub fn oldest(&self, now: Instant) -> Duration {
        let since = self.entries.values().map(|entry| entry.since).min();
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// A new entry; it waits for the end of a write that was forgotten.
    fn insert(&mut self, key: K, value: V, urgency: Urgency, now: Instant) {
        let ending = self.ending.remove(&key);
        let writing = Stage::Writing { newer_since: Some(now) };
        let stage = if ending { writing } else { Stage::Waiting(now, 0) };
        let entry = Entry { value, urgency, since: now, failures: 0, stage };
        self.entries.insert(key.clone(), entry);
        if !ending {
            self.enter_lane(key);
        }
    }

    /// How far retries are spread when those that wait already come back at a limited rate.
    fn spacing(&self) -> Duration {
        SPACING.saturating_mul(u32::try_from(self.waiting.len()).unwrap_or(u32::MAX))
    }

    /// Has the write of `key` wait until `at`.
    fn wait(&mut self, key: &K, at: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        self.tickets += 1;
        entry.stage = Stage::Waiting(at, self.tickets);
        self.waiting.insert((at, self.tickets), key.clone());
    }

    fn wake(&mut self, now: Instant) {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > now {
                return;
            }
            let key = first.remove();
            self.enter_lane(key);
        }
    }

    fn enter_lane(&mut self, key: K) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        self.tickets += 1;
        entry.stage = Stage::Ready(self.tickets);
        self.ready[entry.lane() as usize].push_back((self.tickets, key));
    }
}

impl<V> Entry<V> {
    fn lane(&self) -> Lane {
        match self.urgency {
            Urgency::OtherChange if self.failures <= 1 => Lane::OtherChange,
            Urgency::OtherChange | Urgency::OtherHeartbeat => Lane::OtherRest,
            Urgency::Partition => Lane::Partition,
            _ if self.failures > 1 => Lane::Refused,
            Urgency::Change => Lane::Change,
            Urgency::FirstResult => Lane::FirstResult,
            Urgency::Heartbeat => Lane::Heartbeat,
        }
    }
}

/// Longest wait after a failure that `failures` others in a row came before; what is waited is
/// drawn from all of it, so that the writes of thousands of clusters do not come back together.
fn backoff(failures: u32) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << failures.min(6)).min(BACKOFF_CAP)
}

#[cfg(test)]
mod tests;
