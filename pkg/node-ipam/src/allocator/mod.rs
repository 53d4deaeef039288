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
mod open;
mod pressure;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cidr::{Change, Exhausted, IpNet, Ledger, Pool};
use model::Node;
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
    conflicts: BTreeSet<(Uid, Uid)>,
    foreign: u64,
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
            conflicts: BTreeSet::new(),
            foreign: 0,
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

    /// Takes in what the cluster says of a live Node. Called for every add and update, and with
    /// the result of a consistent read.
    pub fn observe(&mut self, node: &Node, now: Instant) -> Effects {
        if node.pod_cidrs.is_empty() { self.see_empty(node, now) } else { self.see_assigned(node) }
    }

    /// Takes in a consistent read of a Node that a worker asked for. A UID that the watch has
    /// meanwhile reported as gone stays gone.
    pub fn observe_read(&mut self, node: &Node, now: Instant) -> Effects {
        if self.open.contains_key(node.uid.as_ref()) {
            self.observe(node, now)
        } else {
            Effects::default()
        }
    }

    fn see_empty(&mut self, node: &Node, now: Instant) -> Effects {
        let mut effects = Effects::default();
        if let Some(open) = self.open.get_mut(&node.uid) {
            open.deleting = node.deleting;
            // Only what was never sent may be given up (R2).
            if node.deleting && !matches!(open.phase, Phase::Reserved { .. }) {
                self.close(&node.uid);
            }
            return effects;
        }
        // A claim without an open entry is bound: this copy is older than our own write.
        let bound = self.ledger.claim(&Owner::Node(node.uid.clone())).is_some();
        if !bound && !node.deleting {
            self.open.insert(node.uid.clone(), Open::new(node.name.clone(), now));
            effects.wake.push(node.name.clone());
        }
        effects
    }

    fn see_assigned(&mut self, node: &Node) -> Effects {
        let mut effects = Effects::default();
        let (cidrs, garbage) = parse_cidrs(node);
        let owner = Owner::Node(node.uid.clone());
        let was_open = self.close(&node.uid).is_some();
        let claim = self.ledger.claim(&owner);
        let seen_before = self.names.contains_key(&node.uid);
        if (seen_before || claim.is_some()) && same_set(claim.unwrap_or_default(), &cidrs) {
            self.names.insert(node.uid.clone(), node.name.clone());
            return effects;
        }
        if was_open || claim.is_some() {
            self.foreign += 1;
        }
        self.forget_findings(&node.uid);
        self.names.insert(node.uid.clone(), node.name.clone());
        let taken = self.ledger.occupy(&owner, &cidrs);
        self.count(&taken.change);
        if !taken.external.is_empty() || !garbage.is_empty() {
            self.external.insert(node.uid.clone(), taken.external.len() + garbage.len());
            effects.notices.push(notice::out_of_range(
                node,
                &taken.external,
                &garbage,
                self.ledger.pools(),
            ));
        }
        for conflict in &taken.conflicts {
            if let Owner::Node(other) = &conflict.other {
                self.conflicts.insert(pair(&node.uid, other));
                let other_name = self.name_of(other);
                effects.notices.extend(notice::conflict(node, other, &other_name, conflict));
            }
        }
        self.warn_of_pressure(&node.name, &node.uid, &mut effects);
        self.serve_line(&mut effects);
        effects
    }

    /// Ends everything of a UID that is confirmed gone: a DELETE event, a consistent list
    /// without it, or a consistent read. Freed blocks go to the first in line.
    pub fn gone(&mut self, uid: &str) -> Effects {
        let mut effects = Effects::default();
        self.close(uid);
        self.forget_findings(uid);
        self.names.remove(uid);
        let change = self.ledger.release(&Owner::Node(uid.into()));
        self.count(&change);
        self.serve_line(&mut effects);
        effects
    }

    /// What to send for a Node, reserving a block of each pool when it has none yet.
    pub fn assign(&mut self, uid: &Uid) -> (Assignment, Effects) {
        let mut effects = Effects::default();
        let Some(open) = self.open.get(uid) else { return (Assignment::Settled, effects) };
        if open.deleting && !matches!(open.phase, Phase::Reserved { unresolved: true }) {
            return (Assignment::Settled, effects);
        }
        if let Phase::Reserved { unresolved } = open.phase {
            if unresolved || !self.contested(uid) {
                return (self.send(uid, unresolved), effects);
            }
            self.give_up(uid, &mut effects);
        }
        match self.reserve(uid, &mut effects) {
            Ok(()) => (self.send(uid, false), effects),
            Err(exhausted) => {
                self.queue_up(uid);
                (Assignment::Starved(exhausted), effects)
            }
        }
    }

    /// The last check before the PATCH of `cidrs` leaves; afterwards its outcome counts as
    /// unknown until an answer says otherwise. `false`: do not send, ask [`Self::assign`] again.
    pub fn begin_send(&mut self, uid: &Uid, cidrs: &[IpNet]) -> bool {
        if self.contested(uid) || self.ledger.claim(&Owner::Node(uid.clone())) != Some(cidrs) {
            return false;
        }
        match self.open.get_mut(uid) {
            Some(Open { phase: Phase::Reserved { unresolved }, deleting: false, .. }) => {
                *unresolved = true;
                true
            }
            _ => false,
        }
    }

    /// The answer says that this PATCH wrote nothing. `before` is what
    /// [`Assignment::Send`] said: an older PATCH of unknown outcome stays unknown.
    pub fn not_written(&mut self, uid: &Uid, before: bool) {
        if let Some(Open { phase: Phase::Reserved { unresolved }, .. }) = self.open.get_mut(uid) {
            *unresolved = before;
        }
    }

    /// A consistent read shows the Node still without CIDRs although a PATCH may be under way,
    /// and other owners meanwhile overlap the claim: sending it again would break R1, so the
    /// block is given up and another one taken.
    pub fn still_empty(&mut self, uid: &Uid) -> Effects {
        let mut effects = Effects::default();
        if self.contested(uid) {
            self.give_up(uid, &mut effects);
            effects.wake.extend(self.open.get(uid).map(|open| open.name.clone()));
        }
        effects
    }

    /// The PATCH was answered 200: bound, and the time since the Node was first seen without
    /// CIDRs. `None` when the Node is gone or was settled by the watch before the answer came.
    pub fn bound(&mut self, uid: &Uid, now: Instant) -> Option<std::time::Duration> {
        let open = self.close(uid)?;
        self.names.insert(uid.clone(), open.name);
        Some(now.saturating_duration_since(open.since))
    }

    /// Whether an event of this reason is due for a Node: the first at once, then one per
    /// `every` while the Node stays unassigned (`node-ipam.md` 4.3).
    pub fn due(
        &mut self,
        uid: &str,
        reason: &'static str,
        every: std::time::Duration,
        now: Instant,
    ) -> bool {
        self.open.get_mut(uid).is_some_and(|open| open.due(reason, every, now))
    }

    fn send(&self, uid: &Uid, unresolved: bool) -> Assignment {
        let cidrs = self.ledger.claim(&Owner::Node(uid.clone())).unwrap_or_default().to_vec();
        Assignment::Send { cidrs, unresolved }
    }

    fn reserve(&mut self, uid: &Uid, effects: &mut Effects) -> Result<(), Exhausted> {
        let allocated = self.ledger.allocate(&Owner::Node(uid.clone()))?;
        self.count(&allocated.change);
        let pools = self.ledger.pools().iter().map(Pool::cidr);
        effects.skipped.extend(pools.zip(allocated.skipped));
        let mut name = None;
        if let Some(open) = self.open.get_mut(uid) {
            if let Phase::Starved { ticket } = open.phase {
                self.line.remove(&ticket);
            }
            open.phase = Phase::Reserved { unresolved: false };
            name = Some(open.name.clone());
        }
        if let Some(name) = name {
            self.warn_of_pressure(&name, uid, effects);
        }
        Ok(())
    }

    /// Gives a reserved block back; the Node is pending again.
    fn give_up(&mut self, uid: &Uid, effects: &mut Effects) {
        self.forget_findings(uid);
        let change = self.ledger.release(&Owner::Node(uid.clone()));
        self.count(&change);
        if let Some(open) = self.open.get_mut(uid) {
            open.phase = Phase::Pending;
        }
        self.serve_line(effects);
    }

    fn queue_up(&mut self, uid: &Uid) {
        if let Some(open) = self.open.get_mut(uid)
            && !matches!(open.phase, Phase::Starved { .. })
        {
            open.phase = Phase::Starved { ticket: self.next_ticket };
            self.line.insert(self.next_ticket, uid.clone());
            self.next_ticket += 1;
        }
    }

    /// Hands free blocks to those who wait, first come first served.
    fn serve_line(&mut self, effects: &mut Effects) {
        while let Some((_, uid)) = self.line.first_key_value() {
            let uid = uid.clone();
            if self.reserve(&uid, effects).is_err() {
                return;
            }
            effects.wake.extend(self.open.get(&uid).map(|open| open.name.clone()));
        }
    }

    /// Whether another owner's claim overlaps a block of this Node.
    fn contested(&self, uid: &Uid) -> bool {
        let me = Owner::Node(uid.clone());
        let claim = self.ledger.claim(&me).unwrap_or_default();
        claim.iter().any(|cidr| self.ledger.overlapping(cidr).iter().any(|(owner, _)| *owner != me))
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
        self.conflicts.retain(|(a, b)| **a != *uid && **b != *uid);
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

fn pair(a: &Uid, b: &Uid) -> (Uid, Uid) {
    if a < b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) }
}

fn same_set(a: &[IpNet], b: &[IpNet]) -> bool {
    a.len() == b.len() && a.iter().all(|net| b.contains(net))
}

/// The Node's CIDRs, and the texts that are none (R5).
fn parse_cidrs(node: &Node) -> (Vec<IpNet>, Vec<String>) {
    let mut cidrs = Vec::new();
    let mut garbage = Vec::new();
    for text in &node.pod_cidrs {
        match cidr::parse(text) {
            Ok(net) => cidrs.push(net),
            Err(_) => garbage.push(text.to_string()),
        }
    }
    (cidrs, garbage)
}
