//! [`Allocator`]: the state machine that decides which Node has which pod CIDR. No I/O.
//!
//! The watch handler tells it what the cluster says ([`Allocator::observe`],
//! [`Allocator::gone`]); the workers ask it what to send ([`Allocator::assign`],
//! [`Allocator::begin_send`]) and tell it what came back. One mutex guards it and no call
//! to the API is ever made while that is held.
//!
//! What holds at all times:
//! - A claim belongs to a Node UID. It ends when that UID is gone, when a read shows other CIDRs on
//!   it, or when its blocks were never sent or can no longer be applied and somebody else holds
//!   them (`rule:claim-outlives-refusal`, `rule:unknown-outcome-ends`).
//! - A UID has at most one claim, and every retry sends it again (`rule:retry-repeats-the-claim`).
//! - While a Node starves no block is free for it: a freed block goes to the first that starves
//!   (`rule:first-starved-first-served`).

mod clouds;
mod cluster_cidrs;
mod findings;
mod observing;
mod pool_source;
mod sending;
mod shortage;
mod unassigned_nodes;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use cidr::{IpNet, Pool};
use findings::Findings;
use pool_source::{CloudMemory, Entry, PoolSource};
use tokio::time::Instant;
use unassigned_nodes::{Phase, Unassigned, WaitQueues};

use super::ledger::{CountedLedger, Owner};
use super::pressure::{PoolState, Servable, Snapshot};
use super::second_allocator::Hold;

pub(crate) use super::ledger::Uid;
pub(crate) use cluster_cidrs::{Holding, RangeUse, SeenClusterCidr};
pub(crate) use findings::{Effects, Notice, Skipped};
pub(crate) use pool_source::{CloudSource, ServingState};
pub(crate) use sending::AfterRead;
pub(crate) use shortage::Shortage;

/// From this size on the map of unassigned Nodes shrinks again: all Nodes of a new cluster are in it
/// at first.
const WORTH_SHRINKING: usize = 1024;

/// The work to do for a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// Send these CIDRs, one per pool. When `unresolved`, an earlier PATCH may have been applied
    /// unseen: a consistent read comes first (`rule:unknown-outcome-ends`).
    Send {
        /// In the order of the pools.
        cidrs: Vec<IpNet>,
        /// An earlier PATCH's outcome is unknown.
        unresolved: bool,
        /// When the Node was first seen without CIDRs.
        since: Instant,
    },
    /// A pool is full, so the Node gets no block of any (`rule:no-block-is-lost`), or another Node has
    /// what the cloud names.
    Starved(Shortage),
    /// Not known yet what other Nodes or their VMs have: ask again later.
    TooEarly,
    /// Nothing to do: assigned, being deleted, or gone.
    Settled,
}

/// The allocator's state. See the module's head for what it guarantees.
#[derive(Clone, Debug)]
pub(crate) struct Allocator {
    ledger: CountedLedger,
    source: PoolSource,
    /// Boxed: all Nodes of a new cluster are in here once, and their memory is freed one by one.
    unassigned: HashMap<Uid, Box<Unassigned>>,
    /// Starved Nodes in the order in which they came.
    starved: WaitQueues,
    /// Names of the Nodes that have CIDRs, ours or not.
    assigned: HashMap<Uid, Arc<str>>,
    /// Those of them that `--node-selector` does not select.
    unselected: HashSet<Uid>,
    findings: Findings,
    /// Nodes that another allocator gave CIDRs to while they waited for ours.
    foreign: u64,
    /// A list is being delivered.
    in_list: bool,
    /// Nodes without CIDRs that the list has brought, in its order.
    listed: Vec<Arc<str>>,
    /// Since when the state at the start is known: a whole list was delivered, or workers have begun.
    started: Option<Instant>,
    /// The UIDs of ClusterCIDRs that were full at that moment; `None` for the pools of the flags.
    full_at_start: HashSet<Option<Uid>>,
    /// Empty unless pod CIDRs come from a cloud.
    cloud: CloudMemory,
    /// Until when nothing is sent (`rule:second-allocator-is-told`).
    hold: Hold,
}

impl Allocator {
    /// An allocator over `pools` in which the service ranges stay taken.
    pub(crate) fn new(pools: Vec<Pool>, service_ranges: &[IpNet]) -> Self {
        let mut allocator = Self {
            ledger: CountedLedger::new(pools),
            source: PoolSource::flags(),
            unassigned: HashMap::new(),
            starved: WaitQueues::default(),
            assigned: HashMap::new(),
            unselected: HashSet::new(),
            findings: Findings::default(),
            foreign: 0,
            in_list: false,
            listed: Vec::new(),
            started: None,
            full_at_start: HashSet::new(),
            cloud: CloudMemory::default(),
            hold: Hold::default(),
        };
        for range in service_ranges {
            allocator.ledger.occupy(&Owner::Service(*range), &[*range]);
        }
        allocator
    }

    /// Gives these ranges to no Node.
    pub(crate) fn without(mut self, excluded: &[IpNet]) -> Self {
        for range in excluded {
            self.ledger.occupy(&Owner::Excluded(*range), &[*range]);
        }
        self
    }

    /// Gives no block of these pools (`rule:draining-pool-gives-nothing`).
    pub(crate) fn draining(mut self, ranges: &[IpNet]) -> Self {
        self.source.drained = ranges.to_vec();
        self
    }

    /// Sends nothing while `hold` holds.
    pub(crate) fn holding_by(self, hold: Hold) -> Self {
        Self { hold, ..self }
    }

    /// The hold that stops this allocator.
    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Whether an event of this reason is due for a live Node: the first at once, then one per
    /// `every`. What is kept of a Node without CIDRs ends with that state.
    pub(crate) fn due(
        &mut self,
        uid: &str,
        reason: &'static str,
        every: Duration,
        now: Instant,
    ) -> bool {
        if let Some(node) = self.unassigned.get_mut(uid) {
            return node.event_times().due(reason, every, now);
        }
        let assigned = self.assigned.get_key_value(uid);
        assigned.is_some_and(|(uid, _)| self.findings.due(uid, reason, every, now))
    }

    /// Whether the event of a notice is due, so that a Node that overlaps hundreds of others does not
    /// make hundreds of events. A Node that is gone gets none.
    pub(crate) fn notice_due(&mut self, notice: &Notice, every: Duration, now: Instant) -> bool {
        self.is_live(&notice.uid) && self.findings.due(&notice.uid, notice.reason, every, now)
    }

    /// Whether a Node is there and not about to go without CIDRs.
    pub(crate) fn is_live(&self, uid: &str) -> bool {
        self.assigned.contains_key(uid) || self.unassigned.contains_key(uid)
    }

    /// The claim of a Node.
    pub(crate) fn claim(&self, uid: &Uid) -> &[IpNet] {
        self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default()
    }

    /// All that there was at the start is known from now on.
    pub(crate) fn start(&mut self) {
        if self.started.is_none() {
            self.started = Some(Instant::now());
            let full = self.servable().into_iter().filter(|it| it.is_serving && it.nodes == 0);
            self.full_at_start = full.map(|it| it.object.map(|(_, uid)| uid)).collect();
        }
    }

    /// Ends the time in which a Node has no CIDRs.
    fn close(&mut self, uid: &str) -> Option<Box<Unassigned>> {
        let node = self.unassigned.remove(uid)?;
        if self.unassigned.capacity() > WORTH_SHRINKING.max(4 * self.unassigned.len()) {
            self.unassigned.shrink_to(2 * self.unassigned.len());
        }
        if let Phase::Starved(position) = &node.phase {
            self.starved.leave(position);
        }
        Some(node)
    }

    fn name_of(&self, uid: &Uid) -> Arc<str> {
        let name = self.unassigned.get(uid).map(|node| &node.name);
        name.or_else(|| self.assigned.get(uid)).cloned().unwrap_or_else(|| uid.clone())
    }

    fn warn_of_pressure(&mut self, name: &Arc<str>, uid: &Uid, effects: &mut Effects) {
        let crossed = self.ledger.crossed();
        let pools = self.ledger.pools();
        // The process before has reported what is found at the start.
        for (place, percent) in crossed.into_iter().filter(|_| self.started.is_some()) {
            if self.source.warns(pools, &pools[place], percent) {
                effects.notices.push(findings::nearly_full(name, uid, &pools[place], percent));
            }
        }
    }

    /// Keeps the blocks of deleted Nodes unused for so long (`rule:freed-blocks-rest`).
    pub(crate) fn resting_for(mut self, delay: Duration) -> Self {
        self.ledger.set_reuse_delay(delay);
        self
    }

    /// When to call [`Self::end_rests`] next; `None` for never.
    pub(crate) fn next_rested(&self, now: Instant) -> Option<Instant> {
        self.ledger.next_rested(now)
    }

    /// Frees the blocks whose reuse delay is over, the oldest first.
    pub(crate) fn end_rests(&mut self, now: Instant) -> Effects {
        let mut effects = Effects::default();
        while self.ledger.end_rest(now) {
            self.after_release(&mut effects);
        }
        effects
    }

    /// How many more Nodes each ClusterCIDR, or the flags, can serve; empty where a cloud names the
    /// ranges of Nodes, or there is no pool.
    pub(crate) fn servable(&self) -> Vec<Servable> {
        let pools = self.ledger.pools();
        if self.source.takes_from_objects() {
            let of_entry = |entry: &Entry| {
                let object = Some((Arc::clone(&entry.name), Arc::clone(&entry.uid)));
                let is_serving = entry.state == ServingState::Serving;
                Servable::of(
                    object,
                    is_serving,
                    &pools[entry.pools.clone()].iter().collect::<Vec<_>>(),
                )
            };
            return self.source.entries().iter().map(of_entry).collect();
        }
        let gives_blocks =
            !pools.is_empty() && (!self.source.is_cloud() || self.source.is_routed());
        let in_use: Vec<_> = pools.iter().filter(|it| !self.source.is_drained(it)).collect();
        gives_blocks.then(|| Servable::of(None, true, &in_use)).into_iter().collect()
    }

    /// Like [`Self::servable`], once the state at the start is known; with what was full then.
    pub(crate) fn servable_since_start(&self) -> Option<(Vec<Servable>, HashSet<Option<Uid>>)> {
        let is_known = self.started.is_some() && !self.in_list;
        is_known.then(|| (self.servable(), self.full_at_start.clone()))
    }

    /// The pools in numbers and the pod CIDRs that rest, in order of address, once the state at the
    /// start is known.
    pub(crate) fn pools_since_start(&self) -> Option<(Vec<PoolState>, Vec<IpNet>)> {
        let is_known = self.started.is_some() && !self.in_list;
        is_known.then(|| (self.pool_states(), self.ledger.resting_cidrs()))
    }

    fn pool_states(&self) -> Vec<PoolState> {
        let mut pools = self.ledger.pool_states();
        for (pool, (name, state)) in pools.iter_mut().zip(self.source.states(self.ledger.pools())) {
            (pool.object, pool.state) = (name, state.label());
        }
        pools
    }

    /// Counts everything.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            pools: self.pool_states(),
            conflicts: self.findings.conflicts(),
            external: self.findings.external(),
            in_services: self.findings.in_services(),
            resting: self.ledger.resting(),
            foreign_total: self.foreign,
            servable: self.servable(),
            ..Snapshot::default()
        };
        for (uid, node) in &self.unassigned {
            match node.phase {
                _ if self.is_waiting(uid) => snapshot.starved += 1,
                Phase::Pending => snapshot.pending += 1,
                Phase::Starved(_) => snapshot.starved += 1,
                Phase::Reserved => snapshot.reserved += 1,
            }
        }
        snapshot
    }
}

#[cfg(test)]
mod tests;
