//! [`Process`]: the real allocator, with what its workers and its watch do with it
//! ([`crate::reconciler::Reconciler`]).

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _};
use std::sync::Arc;
use std::time::Duration;

use cidr::{IpNet, Pool};
use kube_api::LabelledNode;
use tokio::time::Instant;

use super::source::Source;
use super::store::{Block, Event, Id, Shown, Store};
use crate::allocator::unassigned_nodes::Phase;
use crate::allocator::{AfterRead, Allocator, Assignment, Owner};

/// What a worker does with the key that it has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worker {
    Idle,
    /// Waits for a read of this Node; what was read, and what follows when it has no block.
    Reading {
        id: Id,
        begun: Instant,
        read: Option<Found>,
        resend: bool,
    },
    /// Waits for its turn to send.
    Ready {
        id: Id,
        block: Block,
    },
    /// Waits for the answer to a PATCH.
    Waiting,
}

/// What a read of a name found.
pub(super) type Found = Result<Shown, Absent>;

/// There was no Node of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Absent;

/// All that a process knows.
#[derive(Clone)]
pub(super) struct Process {
    source: Source,
    draining: [bool; 2],
    pub(super) allocator: Allocator,
    /// Its cache.
    pub(super) shown: [Option<Shown>; 3],
    /// Events on their way to it.
    pub(super) events: VecDeque<Event>,
    pub(super) workers: [Worker; 3],
    /// The server may have another history than the cache.
    pub(super) is_doubted: bool,
}

impl Process {
    /// A process that has listed all Nodes.
    pub(super) fn start(source: Source, store: &Store, now: Instant) -> Self {
        let mut allocator = source.allocator(store.draining);
        allocator.set_in_list(true);
        for shown in store.nodes.iter().flatten() {
            drop(allocator.observe(&labelled(shown), now));
        }
        allocator.set_in_list(false);
        let shown = store.nodes;
        let workers = [Worker::Idle; 3];
        Self {
            source,
            draining: store.draining,
            allocator,
            shown,
            events: VecDeque::new(),
            workers,
            is_doubted: false,
        }
    }

    /// Takes in the next event.
    pub(super) fn watch(&mut self, now: Instant) {
        match self.events.pop_front() {
            Some(Event::Seen(shown)) => {
                self.shown[shown.id.name] = Some(shown);
                drop(self.allocator.observe(&labelled(&shown), now));
            }
            Some(Event::Gone(id)) => {
                self.shown[id.name] = None;
                drop(self.allocator.gone(&id.uid(), now));
            }
            None => {}
        }
    }

    /// A worker takes the key of this name.
    pub(super) fn work(&mut self, name: usize, now: Instant) {
        let Some(Shown { id, .. }) = self.shown[name] else { return };
        if let (Assignment::Send { cidrs, unresolved, .. }, _) = self.allocator.assign(&id.uid()) {
            self.workers[name] = if unresolved {
                Worker::Reading { id, begun: now, read: None, resend: true }
            } else {
                Block::of(&cidrs).map_or(Worker::Idle, |block| Worker::Ready { id, block })
            };
        }
    }

    /// A worker gets what it has read.
    pub(super) fn take_read(&mut self, name: usize, now: Instant) {
        let Worker::Reading { id, begun, read: Some(read), resend } = self.workers[name] else {
            return;
        };
        self.workers[name] = Worker::Idle;
        match read {
            Ok(shown) if shown.id == id && shown.block.is_none() => {
                let (after, _) = self.allocator.read_empty(&id.uid(), begun, now);
                let block = Block::of(self.allocator.claim(&id.uid()));
                if after == AfterRead::Send
                    && resend
                    && let Some(block) = block
                {
                    self.workers[name] = Worker::Ready { id, block };
                }
            }
            Ok(shown) if shown.id == id => {
                drop(self.allocator.observe_read(&shown.node(), now));
            }
            Ok(_) | Err(Absent) => drop(self.allocator.gone(&id.uid(), now)),
        }
    }

    /// When the next read of a Node may settle something.
    pub(super) fn next_read(&self, now: Instant) -> Option<Instant> {
        let nodes = self.allocator.unassigned.values();
        nodes.filter_map(|node| node.outcome().until()).filter(|until| *until > now).min()
    }

    /// What is true after each call (`rule:first-starved-first-served`, `rule:no-block-is-lost`).
    pub(super) fn check(&self) -> Result<(), String> {
        let Allocator { ledger, unassigned, .. } = &self.allocator;
        let starved = unassigned.values().filter(|it| matches!(it.phase, Phase::Starved(_)));
        if let Some(node) = starved.clone().next()
            && self.has_free()
        {
            return Err(format!("Node {} waits while a block is free", node.name));
        }
        let mut used = 0;
        for uid in self.known() {
            for cidr in self.allocator.claim(&uid.as_str().into()) {
                let others = ledger.overlapping(cidr);
                used += usize::from(others.first().is_some_and(|it| it.0 == owner(&uid)));
            }
        }
        let marked: u128 = ledger.pools().iter().map(Pool::used).sum();
        if u128::try_from(used).ok() != Some(marked) || ledger.len() > self.known().len() {
            return Err(format!("{marked} blocks are used, and claims are on {used}"));
        }
        Ok(())
    }

    /// Whether a Node without a block can get one.
    pub(super) fn has_free(&self) -> bool {
        let pools = self.allocator.ledger.pools().iter().zip(self.draining);
        let mut pools = pools.map(|(pool, drains)| pool.free() > 0 && !drains);
        // A block of each pool of the flags, or of one ClusterCIDR.
        if self.source.is_flags() { pools.all(|it| it) } else { pools.any(|it| it) }
    }

    /// A ClusterCIDR drains from now on.
    pub(super) fn drain(&mut self, number: usize) {
        self.draining[number] = true;
        self.source.see(&mut self.allocator, number, true);
    }

    /// The UIDs of all Nodes that it knows of.
    fn known(&self) -> Vec<String> {
        let Allocator { assigned, unassigned, .. } = &self.allocator;
        let mut known: Vec<String> =
            assigned.keys().chain(unassigned.keys()).map(ToString::to_string).collect();
        known.sort_unstable();
        known.dedup();
        known
    }

    /// The pod CIDRs of each Node, as a new process would know them.
    pub(super) fn claims(&self) -> BTreeMap<String, Vec<IpNet>> {
        let claim = |uid: String| {
            let cidrs = self.allocator.claim(&uid.as_str().into()).to_vec();
            (!cidrs.is_empty()).then_some((uid, cidrs))
        };
        self.known().into_iter().filter_map(claim).collect()
    }

    /// Adds all that its future depends on. What is only told, in events and metrics, is left out.
    pub(super) fn hash_into(&self, hasher: &mut DefaultHasher, now: Instant) {
        let Self { source: _, draining: _, allocator, shown, events, workers, is_doubted } = self;
        (shown, events, is_doubted).hash(hasher);
        for worker in workers {
            match *worker {
                Worker::Idle => 0_u8.hash(hasher),
                Worker::Reading { id, begun, read, resend } => {
                    // Its age matters only where it decides whether the read counts.
                    let node = allocator.unassigned.get(&id.uid());
                    let until = node.and_then(|it| it.outcome().until());
                    let counts = until.map(|until| begun >= until);
                    (1_u8, id, counts, read, resend).hash(hasher);
                }
                Worker::Ready { id, block } => (2_u8, id, block).hash(hasher),
                Worker::Waiting => 3_u8.hash(hasher),
            }
        }
        let Allocator {
            ledger,
            source: _,
            unassigned,
            starved: _,
            assigned,
            unselected: _,
            findings: _,
            foreign: _,
            in_list,
            listed: _,
            started: _,
            full_at_start: _,
            cloud: _,
            hold: _,
        } = allocator;
        (format!("{:?}", ledger.pools()), in_list).hash(hasher);
        let tickets: Vec<u64> = {
            let mut tickets: Vec<u64> =
                unassigned.values().filter_map(|it| ticket(&it.phase)).collect();
            tickets.sort_unstable();
            tickets
        };
        for uid in self.known() {
            let claim = ledger.claim(&owner(&uid));
            (&uid, claim, assigned.contains_key(uid.as_str())).hash(hasher);
            if let Some(node) = unassigned.get(uid.as_str()) {
                let place = ticket(&node.phase).map(|it| tickets.binary_search(&it));
                let left = |until: Instant| until.saturating_duration_since(now);
                let (in_flight, unknown, reads) = node.outcome().parts();
                let outcome: [Option<Duration>; 2] = [in_flight.map(left), unknown.map(left)];
                let is_reserved = node.phase == Phase::Reserved;
                (place, outcome, reads, is_reserved, node.deleting).hash(hasher);
            }
        }
    }
}

fn labelled(shown: &Shown) -> LabelledNode {
    LabelledNode { node: shown.node(), marks: Some(Arc::default()) }
}

fn ticket(phase: &Phase) -> Option<u64> {
    match phase {
        Phase::Starved(position) => Some(position.ticket),
        Phase::Pending | Phase::Reserved => None,
    }
}

fn owner(uid: &str) -> Owner {
    Owner::Node(uid.into())
}
