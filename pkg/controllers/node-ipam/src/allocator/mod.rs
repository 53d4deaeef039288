//! Who has which pod CIDR: the state machine of `node-ipam.md` 1.3, without I/O.
//!
//! The watch handler tells it what the cluster says ([`Allocator::observe`],
//! [`Allocator::gone`]); the workers ask it what to send ([`Allocator::assign`],
//! [`Allocator::begin_send`]) and tell it what came back. One mutex guards it and no call
//! to the API is ever made while that is held.
//!
//! What holds at all times (`node-ipam.md` 5.1):
//! - A claim belongs to a Node UID and ends only when that UID is gone or a read showed other
//!   CIDRs on it; never on `deletionTimestamp`, never on a failed PATCH (R2).
//! - A UID has at most one claim, and every retry sends it again (R3, R4).
//! - When somebody waits for a block, no block is free: a freed block goes to the first in line
//!   at once, so nobody overtakes (R8, scenario 28).

mod audit;
mod notice;
mod observing;
mod open;
mod pressure;
mod sending;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cidr::{Change, Exhausted, IpNet, Ledger, Pool};
use tokio::time::Instant;

pub use notice::{Effects, Notice};
use open::{Open, Phase};
use pressure::Pressure;
pub use snapshot::{PoolState, Snapshot};

/// A Node's UID.
pub type Uid = Arc<str>;

/// Who holds a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A service range; never released.
    Service(IpNet),
    /// A Node, by UID and never by name: a name may be used again.
    Node(Uid),
}

/// What a worker is to do for a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// Send these CIDRs, one per pool. When `unresolved`, an earlier PATCH may have been applied
    /// unseen: a consistent read comes first.
    Send {
        /// In the order of the pools.
        cidrs: Vec<IpNet>,
        /// An earlier PATCH's outcome is unknown.
        unresolved: bool,
    },
    /// No pool may be short of a block for the Node to get any (R6); it waits in line.
    Starved(Exhausted),
    /// Nothing to do: assigned, being deleted, or gone.
    Settled,
}

/// The allocator's state. See the module's head for what it guarantees.
#[derive(Debug)]
pub struct Allocator {
    ledger: Ledger<Owner>,
    /// Nodes that are alive and have no CIDRs yet.
    open: HashMap<Uid, Open>,
    /// Starved Nodes in the order in which they came.
    line: BTreeMap<u64, Uid>,
    next_ticket: u64,
    /// Nodes that have CIDRs, ours or not.
    names: HashMap<Uid, Arc<str>>,
    external: HashMap<Uid, usize>,
    /// When each notice was last given out.
    noticed: HashMap<(Uid, &'static str), Instant>,
    conflicts: BTreeSet<(Uid, Uid)>,
    foreign: u64,
    /// A list is being delivered.
    in_list: bool,
    pressure: Vec<Pressure>,
    occupied_total: Vec<u128>,
    freed_total: Vec<u128>,
}

impl Allocator {
    /// An allocator over `pools` in which the service ranges are taken for ever.
    pub fn new(pools: Vec<Pool>, service_ranges: &[IpNet]) -> Self {
        let count = pools.len();
        let mut allocator = Self {
            ledger: Ledger::new(pools),
            open: HashMap::new(),
            line: BTreeMap::new(),
            next_ticket: 0,
            names: HashMap::new(),
            external: HashMap::new(),
            noticed: HashMap::new(),
            conflicts: BTreeSet::new(),
            foreign: 0,
            in_list: false,
            pressure: vec![Pressure::default(); count],
            occupied_total: vec![0; count],
            freed_total: vec![0; count],
        };
        for range in service_ranges {
            let taken = allocator.ledger.occupy(&Owner::Service(*range), &[*range]);
            allocator.count(&taken.change);
        }
        allocator
    }

    /// Whether an event of this reason is due for a Node: the first at once, then one per
    /// `every` while the Node stays unassigned (`node-ipam.md` 4.3).
    pub fn due(&mut self, uid: &str, reason: &'static str, every: Duration, now: Instant) -> bool {
        self.open.get_mut(uid).is_some_and(|open| open.due(reason, every, now))
    }

    /// Whether a notice may be given out: the first at once, then one per Node and reason in
    /// `every`, so that a Node that overlaps hundreds of others does not make hundreds of events.
    pub fn notice_due(&mut self, notice: &Notice, every: Duration, now: Instant) -> bool {
        let last = self.noticed.entry((notice.uid.clone(), notice.reason));
        match last {
            Entry::Occupied(mut last) if now.saturating_duration_since(*last.get()) >= every => {
                last.insert(now);
                true
            }
            Entry::Occupied(_) => false,
            Entry::Vacant(never) => {
                never.insert(now);
                true
            }
        }
    }

    fn close(&mut self, uid: &str) -> Option<Open> {
        let open = self.open.remove(uid)?;
        if let Phase::Starved { ticket } = open.phase {
            self.line.remove(&ticket);
        }
        Some(open)
    }

    fn forget_findings(&mut self, uid: &str) {
        self.external.remove(uid);
        let ended: Vec<_> =
            self.conflicts.iter().filter(|(a, b)| **a == *uid || **b == *uid).cloned().collect();
        for pair in &ended {
            self.conflicts.remove(pair);
        }
        // Who has no conflict left enters the state anew with the next one, which is told at once.
        for uid in ended.into_iter().flat_map(|(a, b)| [a, b]) {
            if !self.conflicts.iter().any(|(a, b)| *a == uid || *b == uid) {
                self.noticed.remove(&(uid, notice::CONFLICT));
            }
        }
    }

    fn name_of(&self, uid: &Uid) -> Arc<str> {
        let open = self.open.get(uid).map(|open| &open.name);
        open.or_else(|| self.names.get(uid)).cloned().unwrap_or_else(|| uid.clone())
    }

    fn warn_of_pressure(&mut self, name: &Arc<str>, uid: &Uid, effects: &mut Effects) {
        for (pool, pressure) in self.ledger.pools().iter().zip(&mut self.pressure) {
            if let Some(line) = pressure.update(pool.used(), pool.blocks()) {
                effects.notices.push(notice::nearly_full(name, uid, pool, line));
            }
        }
    }

    fn count(&mut self, change: &Change) {
        for (total, add) in self.occupied_total.iter_mut().zip(&change.occupied) {
            *total += add;
        }
        for (total, add) in self.freed_total.iter_mut().zip(&change.freed) {
            *total += add;
        }
    }
}
