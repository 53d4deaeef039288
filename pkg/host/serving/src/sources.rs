//! [`Sources`]: a bounded number of connections, shared fairly by the addresses that they come from
//! (rule:no-source-locks-others-out).

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How many connections a listener holds at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) of_all: usize,
    pub(crate) of_one_source: usize,
    /// Whether a connection that is answering requests makes room for one that comes.
    pub(crate) newest_wins: bool,
}

/// The connections of a listener, by source.
pub(crate) struct Sources {
    bounds: Bounds,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// The oldest first.
    connections: BTreeMap<u64, Connection>,
}

struct Connection {
    source: Source,
    activity: Arc<Activity>,
    evicted: CancellationToken,
}

/// Whether one more connection is admitted.
enum Admission {
    Free,
    /// After the connection of this number is evicted.
    Evict(u64),
    Refused,
}

/// One of the connections that a listener admits, until this is dropped.
pub(crate) struct ConnectionSlot {
    sources: Arc<Sources>,
    number: u64,
    evicted: CancellationToken,
}

/// An IPv4 address, or the network of an IPv6 address: whoever has one of its addresses has all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Source(IpAddr);

impl Source {
    fn of(peer: IpAddr) -> Self {
        Self(match peer.to_canonical() {
            IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() & !u128::from(u64::MAX)).into(),
            peer @ IpAddr::V4(_) => peer,
        })
    }
}

impl Sources {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, open: Mutex::default() })
    }

    /// A place for a connection from `peer`, and whether another one was evicted for it; none when
    /// there is no room.
    pub(crate) fn enter(
        self: &Arc<Self>,
        peer: IpAddr,
        activity: Arc<Activity>,
    ) -> Option<(ConnectionSlot, bool)> {
        let (source, evicted) = (Source::of(peer), CancellationToken::new());
        let mut open = self.open.lock();
        let victim = match open.admission(source, self.bounds) {
            Admission::Free => None,
            Admission::Evict(victim) => open.connections.remove(&victim),
            Admission::Refused => return None,
        };
        let is_for_another = victim.is_some();
        if let Some(victim) = victim {
            victim.evicted.cancel();
        }
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, Connection { source, activity, evicted: evicted.clone() });
        drop(open);
        Some((ConnectionSlot { sources: Arc::clone(self), number, evicted }, is_for_another))
    }
}

impl Open {
    /// Whether a connection from `source` is admitted.
    fn admission(&self, source: Source, bounds: Bounds) -> Admission {
        let mut counts: HashMap<Source, usize> = HashMap::new();
        for connection in self.connections.values() {
            *counts.entry(connection.source).or_default() += 1;
        }
        let own = counts.get(&source).copied().unwrap_or_default();
        if own < bounds.of_one_source && self.connections.len() < bounds.of_all {
            return Admission::Free;
        }
        let most = counts.values().copied().max().unwrap_or_default();
        // A source has to make room itself when none has more than it would have.
        let is_own = own >= bounds.of_one_source || own > 0 && own + 1 >= most;
        let makes_room = |of: &Source| {
            if is_own { *of == source } else { counts.get(of) == Some(&most) }
        };
        let candidates =
            self.connections.iter().filter(|(_, connection)| makes_room(&connection.source));
        let of_each = candidates.map(|(number, one)| (one.activity.stage(), *number));
        let may_be_busy = bounds.newest_wins || !is_own && most > 1;
        match of_each.min() {
            Some((stage, victim)) if stage < Stage::Busy || may_be_busy => Admission::Evict(victim),
            _ => Admission::Refused,
        }
    }
}

impl ConnectionSlot {
    /// Runs a connection until it ends or is evicted.
    pub(crate) async fn hold(self, connection: impl Future<Output = ()>) {
        self.evicted.run_until_cancelled(connection).await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.sources.open.lock().connections.remove(&self.number);
    }
}

/// The activity of one connection.
pub(crate) struct Activity(Mutex<State>);

struct State {
    has_tls: bool,
    running: usize,
    last: Instant,
}

/// How far a connection has come; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// TLS is not agreed.
    Handshake,
    /// True while no request is being answered.
    Idle,
    /// At least one is.
    Busy,
}

/// A request being answered.
pub(crate) struct Running(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { has_tls: false, running: 0, last: Instant::now() })))
    }

    /// TLS is agreed.
    pub(crate) fn agreed(&self) {
        let mut state = self.0.lock();
        (state.has_tls, state.last) = (true, Instant::now());
    }

    pub(crate) fn stage(&self) -> Stage {
        match *self.0.lock() {
            State { running: 1.., .. } => Stage::Busy,
            State { has_tls: true, .. } => Stage::Idle,
            State { .. } => Stage::Handshake,
        }
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        self.0.lock().running += 1;
        Running(self.clone())
    }

    /// Ends when nothing has run for `limit`.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let due = self.idle_at(now, limit);
            if now >= due {
                return;
            }
            sleep_until(due).await;
        }
    }

    fn idle_at(&self, now: Instant, limit: Duration) -> Instant {
        let state = self.0.lock();
        if state.running > 0 { now + limit } else { state.last + limit }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.running -= 1;
        state.last = Instant::now();
    }
}

#[cfg(test)]
mod tests;
