//! [`Claims`]: who has which CIDRs, where a cloud knows of them too. The watch and the workers share
//! it; no I/O.
//!
//! A claim is kept until its Node is gone or shows other CIDRs, whatever became of a write
//! (`rule:reserved-block-is-kept`).

mod set_aside;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use cidr::{Exhausted, IpNet, Occupied, Pool};
use kube_api::Node;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::allocator::findings::Findings;
use crate::ledger::{CountedLedger, Owner, Uid};
use crate::pressure::{Counted, Snapshot};
use crate::second_allocator::Evidence;

/// The first block is given out after this time, even if the VM of a Node cannot be read.
const FIRST_READS: Duration = Duration::from_secs(60);

/// Why a Node may not be given CIDRs now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// A list of Nodes is being taken in, or the Node is gone.
    #[error("cannot tell yet who has which pod CIDRs")]
    NotNow,
    /// The CIDR is claimed by another Node (`rule:block-has-one-holder`).
    #[error("cannot give the Node {cidr}, which is still that of Node {by}")]
    Held {
        /// The CIDR.
        cidr: IpNet,
        /// The name of the Node that has it.
        by: Arc<str>,
    },
    /// The pool is full.
    #[error(transparent)]
    Full(#[from] Exhausted),
}

/// How far a live Node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Without pod CIDRs, and nothing was sent for it.
    Empty,
    /// A PATCH with its claim may have left this process.
    Sent,
    /// Written, but not shown by the cache yet.
    Written,
    /// With pod CIDRs.
    Shows {
        /// Whether this process has sent them.
        ours: bool,
    },
}

/// A live Node.
#[derive(Debug)]
struct Known {
    name: Arc<str>,
    phase: Phase,
    /// When it was first seen.
    since: Instant,
    /// The cloud has refused to route what is claimed for it.
    is_refused: bool,
}

/// The consequences of a change.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub(super) struct Effects {
    /// Names of Nodes that may try again.
    pub(super) wake: Vec<Arc<str>>,
    /// The Node shows what another one has.
    pub(super) conflict: Option<Conflict>,
    /// Set when no PATCH of ours can have written what the Node shows.
    pub(super) foreign: Option<Evidence>,
}

/// Two Nodes that overlap.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) mine: IpNet,
    pub(super) theirs: IpNet,
    /// Name and UID of the other Node.
    pub(super) other: (Arc<str>, Uid),
}

/// The claims of all Nodes.
#[derive(Debug)]
pub(super) struct Claims {
    ledger: CountedLedger,
    nodes: HashMap<Uid, Known>,
    /// Names of Nodes that were refused.
    waiting: BTreeSet<Arc<str>>,
    in_list: bool,
    findings: Findings,
    /// Nodes that another allocator gave CIDRs to while they waited for ours.
    foreign: u64,
    /// Nodes without pod CIDRs that were there at the start and whose VMs were not read yet.
    unread: HashSet<Uid>,
    /// Since when what there was at the start is known.
    started: Option<Instant>,
}

impl Claims {
    /// Claims on a pool, or without one where the cloud chooses.
    pub(super) fn new(pool: Option<Pool>, reserved: &[IpNet]) -> Self {
        let mut claims = Self {
            ledger: CountedLedger::new(pool.into_iter().collect()),
            nodes: HashMap::new(),
            waiting: BTreeSet::new(),
            in_list: false,
            findings: Findings::default(),
            foreign: 0,
            unread: HashSet::new(),
            started: None,
        };
        for range in reserved {
            claims.occupy(&Owner::Excluded(*range), &[*range]);
        }
        claims
    }

    /// Keeps the blocks of deleted Nodes unused for so long (`rule:freed-blocks-rest`).
    pub(super) fn resting_for(mut self, reuse_delay: Duration) -> Self {
        self.ledger.set_reuse_delay(reuse_delay);
        self
    }

    /// Whether a list of Nodes is being taken in.
    pub(super) fn set_in_list(&mut self, in_list: bool) {
        if self.in_list && !in_list {
            self.start();
        }
        self.in_list = in_list;
    }

    /// All that there was at the start is known: a whole list was taken in, or workers have begun,
    /// since a cache that was filled before brings no list.
    fn start(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now)
    }

    /// Takes in a Node as the watch shows it.
    pub(super) fn see(&mut self, node: &Node) -> Effects {
        let is_ours = self.shows_ours(node);
        let known = self.nodes.get(&node.uid);
        let since = known.map_or_else(Instant::now, |known| known.since);
        let is_refused = known.is_some_and(|it| it.is_refused) && node.pod_cidrs.is_empty();
        let known = known.map(|known| known.phase);
        let phase = match known {
            known if node.pod_cidrs.is_empty() => known.unwrap_or(Phase::Empty),
            _ => Phase::Shows { ours: is_ours },
        };
        let name = Arc::clone(&node.name);
        self.nodes.insert(Arc::clone(&node.uid), Known { name, phase, since, is_refused });
        if node.pod_cidrs.is_empty() {
            return Effects::default();
        }
        self.waiting.remove(&node.name);
        let foreign = match known {
            Some(Phase::Empty) => Some(Evidence::SawEmpty),
            Some(Phase::Sent) if !is_ours => Some(Evidence::SawEmpty),
            None if self.started.is_some() => Some(Evidence::SeenLate),
            _ => None,
        };
        self.foreign += u64::from(foreign == Some(Evidence::SawEmpty));
        let shown: Vec<IpNet> =
            node.pod_cidrs.iter().filter_map(|text| cidr::parse(text).ok()).collect();
        let garbage = node.pod_cidrs.iter().count() - shown.len();
        let had = !self.of(&node.uid).is_empty();
        if self.of(&node.uid) == shown {
            self.findings.set_garbage(&node.uid, garbage);
            return Effects { foreign, ..Effects::default() };
        }
        self.set(&node.uid, &shown);
        self.findings.set_garbage(&node.uid, garbage);
        let wake = if had { self.wake() } else { Vec::new() };
        Effects { wake, conflict: self.overlaps(&node.uid).next(), foreign }
    }

    /// A Node is gone.
    pub(super) fn gone(&mut self, uid: &Uid) -> Effects {
        if let Some(known) = self.nodes.remove(uid) {
            self.waiting.remove(&known.name);
            if known.phase != Phase::Empty {
                self.ledger.rest(uid, Instant::now());
            }
        }
        self.set(uid, &[]);
        self.ledger.release(&Owner::Aliases(Arc::clone(uid)));
        let mut wake = self.expect_read(uid, false);
        wake.extend(self.wake());
        Effects { wake, ..Effects::default() }
    }

    /// Whether a Node is there, as far as the watch has told.
    pub(super) fn is_live(&self, uid: &Uid) -> bool {
        self.nodes.contains_key(uid)
    }

    /// Since when a Node has waited, if it does.
    pub(super) fn since(&self, uid: &Uid) -> Instant {
        self.nodes.get(uid).map_or_else(Instant::now, |known| known.since)
    }

    /// The pod CIDRs of a Node: what the cache shows, or what was written since.
    pub(super) fn pod_cidrs(&self, node: &Node) -> Vec<String> {
        if node.pod_cidrs.is_empty() && self.phase(&node.uid) == Some(Phase::Written) {
            return self.of(&node.uid).iter().map(cidr::canonical).collect();
        }
        node.pod_cidrs.iter().map(str::to_owned).collect()
    }

    /// The claim of a Node.
    pub(super) fn of(&self, uid: &Uid) -> &[IpNet] {
        self.ledger.claim(&Owner::Node(Arc::clone(uid))).unwrap_or_default()
    }

    /// The block of a Node that the cloud may know.
    pub(super) fn told(&self, uid: &Uid) -> Option<IpNet> {
        self.of(uid).first().copied().filter(|_| self.was_sent(uid))
    }

    /// Whether a Node shows what we have written to it.
    pub(super) fn shows_ours(&self, node: &Node) -> bool {
        let shown = node.pod_cidrs.iter().map(|text| cidr::parse(text).ok());
        !node.pod_cidrs.is_empty()
            && self.was_sent(&node.uid)
            && shown.eq(self.of(&node.uid).iter().copied().map(Some))
    }

    /// Claims what the cloud has given the VM of a Node. What was claimed for it before can no
    /// longer be written.
    pub(super) fn take(&mut self, node: &Node, cidrs: &[IpNet]) -> Result<(), Refusal> {
        self.check(node)?;
        self.start();
        let before = self.of(&node.uid).to_vec();
        self.set(&node.uid, cidrs);
        let Err(held) = self.check_alone(&node.uid) else {
            if before != cidrs {
                self.set_phase(&node.uid, Phase::Empty);
            }
            return Ok(());
        };
        self.waiting.insert(Arc::clone(&node.name));
        // A claim that has not left blocks no other Node.
        let keeps = if self.was_sent(&node.uid) { before } else { Vec::new() };
        self.set(&node.uid, &keeps);
        Err(held)
    }

    /// The block of a Node: the one that it was given before, or a free one.
    pub(super) fn block(&mut self, node: &Node) -> Result<IpNet, Refusal> {
        self.check(node)?;
        let (now, started) = (Instant::now(), self.start());
        if !self.unread.is_empty() && now < started + FIRST_READS {
            return Err(Refusal::NotNow);
        }
        while self.ledger.end_rest(now) {}
        if let Err(held) = self.check_alone(&node.uid) {
            if self.was_sent(&node.uid) {
                self.waiting.insert(Arc::clone(&node.name));
                return Err(held);
            }
            // Somebody else took it before it left.
            self.set(&node.uid, &[]);
        }
        let pools: Vec<usize> = (0..self.ledger.pools().len()).collect();
        let owner = Owner::Node(Arc::clone(&node.uid));
        let allocated = self.ledger.allocate_from(&owner, &pools);
        let allocated = allocated.inspect_err(|_| {
            self.waiting.insert(Arc::clone(&node.name));
        })?;
        self.update_pressure();
        // A pool gives one block; none is left where there is no pool.
        allocated.cidrs.first().copied().ok_or(Refusal::NotNow)
    }

    /// Asked when something of a Node is about to leave: whether it still may.
    pub(super) fn may_send(&mut self, uid: &Uid, cidrs: &[IpNet]) -> bool {
        let may = !self.in_list
            && self.is_live(uid)
            && cidrs.iter().all(|cidr| self.of(uid).contains(cidr))
            && self.check_alone(uid).is_ok();
        if may && self.phase(uid) == Some(Phase::Empty) {
            self.set_phase(uid, Phase::Sent);
        }
        may
    }

    /// The Node has what is claimed for it.
    pub(super) fn written(&mut self, uid: &Uid) {
        if matches!(self.phase(uid), Some(Phase::Empty | Phase::Sent)) {
            self.set_phase(uid, Phase::Written);
        }
    }

    /// Compares all claims with the live Nodes (`rule:no-block-is-lost`); how many were mended.
    pub(super) fn audit<'a>(&mut self, live: impl Iterator<Item = &'a Node>) -> usize {
        let (mut known, mut mended) = (HashSet::new(), 0);
        for node in live {
            known.insert(Arc::clone(&node.uid));
            let (was_known, before) =
                (self.nodes.contains_key(&node.uid), self.of(&node.uid).to_vec());
            let Effects { wake, .. } = self.see(node);
            self.waiting.extend(wake);
            mended += usize::from(!was_known || before != self.of(&node.uid));
        }
        let gone: Vec<_> = self.nodes.keys().filter(|uid| !known.contains(*uid)).cloned().collect();
        mended += gone.len();
        for uid in gone {
            let Effects { wake, .. } = self.gone(&uid);
            self.waiting.extend(wake);
        }
        mended
    }

    /// Makes these the claim of a Node.
    fn set(&mut self, uid: &Uid, cidrs: &[IpNet]) {
        let before = self.others_of(uid);
        self.findings.clear(uid, before.iter());
        let occupied = self.occupy(&Owner::Node(Arc::clone(uid)), cidrs);
        // Without a pool nothing is outside of it.
        let is_pooled = !self.ledger.pools().is_empty();
        self.findings.set_external(uid, if is_pooled { occupied.external.len() } else { 0 });
        for other in self.others_of(uid) {
            self.findings.add_conflict(uid, &other);
        }
    }

    fn occupy(&mut self, owner: &Owner, cidrs: &[IpNet]) -> Occupied<Owner> {
        let occupied = self.ledger.occupy(owner, cidrs);
        self.update_pressure();
        occupied
    }

    /// Metrics show the warning lines that a pool has crossed; no event reports them.
    fn update_pressure(&mut self) {
        drop(self.ledger.crossed());
    }

    /// UIDs of the Nodes that overlap a Node.
    fn others_of(&self, uid: &Uid) -> HashSet<Uid> {
        self.overlaps(uid).map(|conflict| conflict.other.1).collect()
    }

    /// The claims of other Nodes that overlap those of a Node.
    fn overlaps<'a>(&'a self, uid: &'a Uid) -> impl Iterator<Item = Conflict> + 'a {
        self.of(uid).iter().flat_map(move |mine| {
            let others = self.ledger.overlapping(mine).into_iter();
            others.filter_map(move |(owner, theirs)| match owner {
                Owner::Node(other) if other != *uid => {
                    let name = self.nodes.get(&other).map(|known| Arc::clone(&known.name));
                    let other = (name.unwrap_or_default(), other);
                    Some(Conflict { mine: *mine, theirs, other })
                }
                _ => None,
            })
        })
    }

    fn phase(&self, uid: &Uid) -> Option<Phase> {
        self.nodes.get(uid).map(|known| known.phase)
    }

    fn set_phase(&mut self, uid: &Uid, phase: Phase) {
        if let Some(known) = self.nodes.get_mut(uid) {
            known.phase = phase;
        }
    }

    fn was_sent(&self, uid: &Uid) -> bool {
        matches!(self.phase(uid), Some(Phase::Sent | Phase::Written | Phase::Shows { ours: true }))
    }

    fn check(&self, node: &Node) -> Result<(), Refusal> {
        if self.is_live(&node.uid) && !self.in_list { Ok(()) } else { Err(Refusal::NotNow) }
    }

    /// Whether no other Node's claim overlaps that of this one.
    fn check_alone(&self, uid: &Uid) -> Result<(), Refusal> {
        match self.overlaps(uid).next() {
            Some(Conflict { mine, other: (by, _), .. }) => Err(Refusal::Held { cidr: mine, by }),
            None => Ok(()),
        }
    }

    fn wake(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.waiting).into_iter().collect()
    }
}

impl Counted for Mutex<Claims> {
    fn count(&self) -> Snapshot {
        let mut claims = self.lock();
        while claims.ledger.end_rest(Instant::now()) {}
        let mut snapshot = Snapshot {
            pools: claims.ledger.pool_states(),
            conflicts: claims.findings.conflicts(),
            external: claims.findings.external(),
            foreign_total: claims.foreign,
            resting: claims.ledger.resting(),
            ..Snapshot::default()
        };
        for (uid, known) in &claims.nodes {
            match known.phase {
                Phase::Shows { .. } => {}
                _ if claims.waiting.contains(&known.name) => snapshot.starved += 1,
                _ if claims.of(uid).is_empty() => snapshot.pending += 1,
                _ => snapshot.reserved += 1,
            }
        }
        snapshot
    }
}

#[cfg(test)]
mod tests;
