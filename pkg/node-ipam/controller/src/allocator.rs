//! Who has which pod CIDR: the state machine of node-ipam, without I/O.
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
//!
//! Blocks of Nodes that are gone, which nobody gets for a while (`rule:freed-blocks-rest`).

mod audit;
mod catalogue;
mod cluster_cidrs;
mod counters;
mod findings;
mod notice;
mod observing;
mod sending;
mod shortage;
mod snapshot;
mod starving;
mod unassigned;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use catalogue::Owner;
use catalogue::Rests;
use catalogue::{Candidates, Catalogue};
use cidr::{IpNet, Ledger, Pool};
use counters::Counters;
use findings::Findings;
use tokio::time::Instant;
use unassigned::{Phase, Place, Unassigned};

use super::second_allocator::Hold;

pub(crate) use catalogue::Standing;
pub(crate) use catalogue::Uid;
pub(crate) use cluster_cidrs::{Holding, RangeUse, SeenClusterCidr};
pub(crate) use notice::{Effects, Notice, Skipped};
pub(crate) use sending::{AfterRead, OpenOutcome};
pub(crate) use shortage::Shortage;

/// After the first Nodes of a cluster, of which all were unassigned at once, memory is given back
/// from this size on.
const WORTH_SHRINKING: usize = 1024;

/// What a worker is to do for a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// Send these CIDRs, one per pool. When `unresolved`, an earlier PATCH may have been applied
    /// unseen: a consistent read comes first (`rule:read-before-resend`).
    Send {
        /// In the order of the pools.
        cidrs: Vec<IpNet>,
        /// An earlier PATCH's outcome is unknown.
        unresolved: bool,
        /// When the Node was first seen without CIDRs.
        since: Instant,
    },
    /// A pool is full, so the Node gets no block of any (`rule:all-families-or-none`).
    Starved(Shortage),
    /// Nothing to do: assigned, being deleted, or gone.
    Settled,
}

/// The allocator's state. See the module's head for what it guarantees.
#[derive(Debug)]
pub(crate) struct Allocator {
    ledger: Ledger<Owner>,
    /// Where the pools come from, when that is not the flags.
    catalogue: Option<Box<Catalogue>>,
    /// Boxed: all Nodes of a new cluster are in here once, and what they take is to be freed one by
    /// one.
    unassigned: HashMap<Uid, Box<Unassigned>>,
    /// Starved Nodes in the order in which they came.
    starved: Lines,
    /// Names of the Nodes that have CIDRs, ours or not.
    assigned: HashMap<Uid, Arc<str>>,
    findings: Findings,
    counters: Counters,
    rests: Rests,
    /// A list is being delivered.
    in_list: bool,
    /// Nodes without CIDRs that the list has brought, in its order.
    listed: Vec<Arc<str>>,
    /// What there is at the start is known: a whole list was delivered, or workers have begun.
    is_started: bool,
    /// Until when nothing is sent (`rule:second-allocator-is-told`).
    hold: Hold,
}

impl Allocator {
    /// An allocator over `pools` in which the service ranges are taken for ever.
    pub(crate) fn new(pools: Vec<Pool>, service_ranges: &[IpNet]) -> Self {
        let mut allocator = Self {
            counters: Counters::new(pools.len()),
            ledger: Ledger::new(pools),
            catalogue: None,
            unassigned: HashMap::new(),
            starved: Lines::default(),
            assigned: HashMap::new(),
            findings: Findings::default(),
            rests: Rests::default(),
            in_list: false,
            listed: Vec::new(),
            is_started: false,
            hold: Hold::default(),
        };
        for range in service_ranges {
            allocator.set_aside(&Owner::Service(*range), &[*range]);
        }
        allocator
    }

    /// The same without these ranges (`rule:excluded-addresses-go-to-nobody`).
    pub(crate) fn without(mut self, excluded: &[IpNet]) -> Self {
        for range in excluded {
            self.set_aside(&Owner::Excluded(*range), &[*range]);
        }
        self
    }

    fn set_aside(&mut self, owner: &Owner, ranges: &[IpNet]) {
        let taken = self.ledger.occupy(owner, ranges);
        self.counters.count(&taken.change);
    }

    /// The same, which sends nothing while this holds.
    pub(crate) fn holding_by(self, hold: Hold) -> Self {
        Self { hold, ..self }
    }

    /// What holds it.
    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Whether an event of this reason is due for an unassigned Node: the first at once, then one
    /// per `every` (`rule:one-event-per-state-and-period`).
    pub(crate) fn due(
        &mut self,
        uid: &str,
        reason: &'static str,
        every: Duration,
        now: Instant,
    ) -> bool {
        self.unassigned.get_mut(uid).is_some_and(|node| node.told().due(reason, every, now))
    }

    /// The same for a notice, so that a Node that overlaps hundreds of others does not make
    /// hundreds of events. A Node that went meanwhile is told nothing.
    pub(crate) fn notice_due(&mut self, notice: &Notice, every: Duration, now: Instant) -> bool {
        let uid = &notice.uid;
        let is_live = self.assigned.contains_key(uid) || self.unassigned.contains_key(uid);
        is_live && self.findings.notice_due(notice, every, now)
    }

    /// Ends the time in which a Node has no CIDRs.
    fn close(&mut self, uid: &str) -> Option<Box<Unassigned>> {
        let node = self.unassigned.remove(uid)?;
        if self.unassigned.capacity() > WORTH_SHRINKING.max(4 * self.unassigned.len()) {
            self.unassigned.shrink_to(2 * self.unassigned.len());
        }
        if let Phase::Starved(place) = &node.phase {
            self.starved.leave(place);
        }
        Some(node)
    }

    /// Ends a claim.
    fn release(&mut self, owner: &Owner) {
        let change = self.ledger.release(owner);
        self.counters.count(&change);
        self.counters.relieve(self.ledger.pools());
    }

    fn name_of(&self, uid: &Uid) -> Arc<str> {
        let name = self.unassigned.get(uid).map(|node| &node.name);
        name.or_else(|| self.assigned.get(uid)).cloned().unwrap_or_else(|| uid.clone())
    }

    fn warn_of_pressure(&mut self, name: &Arc<str>, uid: &Uid, effects: &mut Effects) {
        let pools = self.ledger.pools();
        // What is found at the start is no news: the process before has told it.
        let is_news = self.is_started;
        for (pool, line) in self.counters.crossed(pools).into_iter().filter(|_| is_news) {
            // Where another pool of the flags serves as well, the two are looked at together.
            if self.catalogue.is_some() || is_family_at(pools, pool, line) {
                effects.notices.push(notice::nearly_full(name, uid, pool, line));
            }
        }
    }
}

/// Whether the pools of the family of this one are used to so many percent, taken together.
fn is_family_at(pools: &[Pool], one: &Pool, percent: u8) -> bool {
    let of_family = || pools.iter().filter(|pool| pool.family() == one.family());
    let (used, blocks) = (of_family().map(Pool::used).sum(), of_family().map(Pool::blocks).sum());
    super::pressure::at_least(used, blocks, percent.into())
}

impl Allocator {
    /// The same, in which the blocks of a Node that is gone are given to nobody for so long.
    pub(crate) fn resting_for(self, delay: Duration) -> Self {
        Self { rests: Rests::of(delay), ..self }
    }

    /// A Node that may have used its blocks is gone. Its claim goes over to the rest, and ends.
    fn let_rest(&mut self, uid: &Uid, now: Instant) {
        let claim = self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default().to_vec();
        if self.rests.are_wanted() && !claim.is_empty() {
            self.set_aside(&Owner::Resting(uid.clone()), &claim);
            self.rests.begin(uid.clone(), now);
        }
    }

    /// When [`Self::end_rests`] is to be called next; `None` for never.
    pub(crate) fn next_rested(&self, now: Instant) -> Option<Instant> {
        self.rests.next(now)
    }

    /// Frees the blocks that have rested for long enough, the oldest first.
    pub(crate) fn end_rests(&mut self, now: Instant) -> Effects {
        let mut effects = Effects::default();
        while let Some(uid) = self.rests.end(now) {
            self.release(&Owner::Resting(uid));
            self.after_release(&mut effects);
        }
        effects
    }
}

/// The Nodes that wait: a line for each choice of ClusterCIDRs, and one ticket counter for all. The
/// RangeAllocator has one line.
#[derive(Debug, Default)]
struct Lines {
    lines: BTreeMap<Candidates, BTreeMap<u64, Uid>>,
    next_ticket: u64,
}

impl Lines {
    fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    fn join(&mut self, place: &Place, uid: Uid) {
        let Place { line, ticket } = place;
        match self.lines.get_mut(line) {
            Some(waiting) => drop(waiting.insert(*ticket, uid)),
            None => drop(self.lines.insert(line.clone(), BTreeMap::from([(*ticket, uid)]))),
        }
    }

    fn leave(&mut self, place: &Place) {
        if let Some(waiting) = self.lines.get_mut(&place.line) {
            waiting.remove(&place.ticket);
            if waiting.is_empty() {
                self.lines.remove(&place.line);
            }
        }
    }

    /// The first of this line.
    fn first(&self, line: &Candidates) -> Option<(u64, Uid)> {
        let (ticket, uid) = self.lines.get(line)?.first_key_value()?;
        Some((*ticket, uid.clone()))
    }

    /// The first of every line, by ticket.
    fn heads(&self) -> BTreeMap<u64, (Uid, Candidates)> {
        let head = |(line, waiting): (&Candidates, &BTreeMap<u64, Uid>)| {
            let (ticket, uid) = waiting.first_key_value()?;
            Some((*ticket, (uid.clone(), line.clone())))
        };
        self.lines.iter().filter_map(head).collect()
    }
}

#[cfg(test)]
mod tests;
