//! [`World`]: one store, and one process after the other that allocates from it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use state_explorer::Model;
use tokio::time::Instant;

use super::action::Action;
use super::process::{Absent, Process, Worker};
use super::source::Source;
use super::store::{Block, Event, Id, PATCH_LIMIT, Place, Request, Shown, Store};
use crate::patch::Class;

/// What may go wrong, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) crashes: u8,
    /// Answers that do not come, and refusals by 429.
    pub(super) faults: u8,
    /// Nodes that are deleted; their names are used again.
    pub(super) deletions: u8,
    /// Blocks that another allocator sets.
    pub(super) foreign: u8,
    /// Terms that end while their process is stopped.
    pub(super) deposed: u8,
    /// Restores of etcd.
    pub(super) restores: u8,
    /// ClusterCIDRs that drain.
    pub(super) drains: u8,
}

/// What is the same in all states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) nodes: usize,
    pub(super) source: Source,
    /// Events that the watch is behind by at the most.
    pub(super) lag: usize,
    /// What does not hold of the rest of the world.
    pub(super) without: Option<Assumption>,
}

/// What the claims rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assumption {
    /// The next process waits until no PATCH of the one before can be applied, as the fence of a term
    /// ensures (`rule:lease-rights-end-before-the-lease`).
    Fence,
    /// The server applies a PATCH before the deadline that it names, or never.
    Deadline,
    /// A process that was stopped looks at the fence again before a PATCH leaves.
    SecondLook,
    /// A process whose connection broke sends nothing until it has listed all Nodes.
    ListInDoubt,
}

impl Bounds {
    fn has(&self, assumption: Assumption) -> bool {
        self.without != Some(assumption)
    }
}

/// One state.
#[derive(Clone)]
pub(super) struct World {
    pub(super) bounds: Bounds,
    pub(super) left: Budget,
    pub(super) store: Store,
    pub(super) process: Option<Process>,
    /// What a stopped process of an ended term is about to send.
    pub(super) late: Vec<(Id, Block)>,
    pub(super) now: Instant,
}

impl World {
    pub(super) fn new(bounds: Bounds, left: Budget) -> Self {
        let (store, now) = (Store::default(), Instant::now());
        let process = Some(Process::start(bounds.source, &store, now));
        Self { bounds, left, store, process, late: Vec::new(), now }
    }

    fn tell(&mut self, event: Option<Event>) {
        if let (Some(process), Some(event)) = (&mut self.process, event) {
            process.events.push_back(event);
        }
    }

    /// Whether the watch can fall behind by one more event.
    fn may_tell(&self) -> bool {
        self.process.as_ref().is_none_or(|it| it.events.len() < self.bounds.lag)
    }

    fn worker(&self, name: usize) -> Option<Worker> {
        self.process.as_ref().map(|it| it.workers[name])
    }

    /// When something ends by itself.
    fn next_deadline(&self) -> Option<Duration> {
        let open = self.store.requests.iter().filter(|it| it.is_open() && !it.left.is_zero());
        let read = self.process.as_ref().and_then(|it| it.next_read(self.now));
        open.map(|it| it.left).chain(read.map(|it| it - self.now)).min()
    }

    /// A PATCH on the wire is gone by the end of its time.
    fn can_wait(&self) -> bool {
        let mut requests = self.store.requests.iter();
        let has_deadline = self.bounds.has(Assumption::Deadline);
        self.next_deadline().is_some_and(|next| {
            !has_deadline || requests.all(|it| it.place != Place::Wire || it.left > next)
        })
    }

    fn can_start(&self) -> bool {
        let mut requests = self.store.requests.iter();
        !self.bounds.has(Assumption::Fence) || requests.all(|it| it.place != Place::Wire)
    }

    /// What others are known to have is not sent.
    fn send(&mut self, name: usize) -> Result<(), String> {
        let now = self.now;
        let Some(process) = &mut self.process else { return Ok(()) };
        let Worker::Ready { id, block } = process.workers[name] else { return Ok(()) };
        if process.is_doubted {
            process.workers[name] = Worker::Idle;
            return Ok(());
        }
        // A read may have told that a Node is gone before the watch does.
        let others = process.shown.iter().flatten().filter(|it| it.id != id);
        let mut others = others.filter(|it| process.allocator.is_live(&it.id.uid()));
        let taken = others.find(|it| it.block.is_some_and(|it| it.overlaps(block))).copied();
        let until = now + PATCH_LIMIT;
        let departure = process.allocator.begin_send(&id.uid(), &block.cidrs(), now, until);
        process.workers[name] = if departure.is_some() { Worker::Waiting } else { Worker::Idle };
        if departure.is_some() {
            let (left, place) = (PATCH_LIMIT, Place::Wire);
            self.store.requests.push(Request { id, block, left, place, is_awaited: true });
        }
        let source = self.bounds.source;
        if departure.is_some() && source.is_drained(block, self.store.draining) {
            return Err(format!("{block} of a ClusterCIDR that drains is sent for {id}"));
        }
        if departure.is_some() && block.cidrs().len() != source.families().max(1) {
            return Err(format!("{block} alone is sent for {id}"));
        }
        match taken.filter(|_| departure.is_some()) {
            Some(other) => Err(format!("{block} of {} is sent for {id}", other.id)),
            None => Ok(()),
        }
    }

    fn wait(&mut self) {
        let next = self.next_deadline().unwrap_or_default();
        self.now += next;
        for request in &mut self.store.requests {
            request.left = request.left.saturating_sub(next);
        }
    }

    /// The term ends, and with it all that the process waits for.
    fn depose(&mut self) {
        self.left.deposed -= 1;
        let process = self.process.take();
        for worker in process.iter().flat_map(|it| it.workers) {
            if let Worker::Ready { id, block } = worker {
                self.late.push((id, block));
            }
        }
        self.store.requests.iter_mut().for_each(|it| it.is_awaited = false);
    }

    /// What the API servers were about to write is lost with the last change.
    fn restore(&mut self) {
        self.left.restores -= 1;
        for number in 0..self.store.requests.len() {
            if self.store.requests[number].is_awaited {
                self.answer(number, None);
            }
        }
        self.store.restore();
        let Some(process) = &mut self.process else { return };
        process.events.clear();
        process.is_doubted = self.bounds.has(Assumption::ListInDoubt);
        for worker in &mut process.workers {
            if matches!(worker, Worker::Reading { .. }) {
                *worker = Worker::Idle;
            }
        }
    }

    fn drain(&mut self, number: usize) {
        self.left.drains -= 1;
        self.store.draining[number] = true;
        if let Some(process) = &mut self.process {
            process.drain(number);
        }
    }

    fn set_by_other(&mut self, name: usize, block: usize) {
        self.left.foreign -= 1;
        let block = self.bounds.source.blocks().get(block).copied();
        let event = self.store.nodes[name].map(|it| {
            self.store.foreign.push(it.id);
            self.store.set(Shown { block, ..it })
        });
        self.tell(event);
    }

    /// The process gets the answer to a PATCH, or knows that it will not.
    fn answer(&mut self, request: usize, class: Option<Class>) {
        self.store.requests[request].is_awaited = false;
        let (id, now) = (self.store.requests[request].id, self.now);
        let Some(process) = &mut self.process else { return };
        let (uid, allocator) = (id.uid(), &mut process.allocator);
        process.workers[id.name] = Worker::Idle;
        match class {
            None | Some(Class::Ambiguous { .. }) => allocator.lost(&uid, None),
            Some(Class::Done) => drop(allocator.bound(&uid, now)),
            Some(Class::Missing | Class::Replaced | Class::Taken) => {
                allocator.refused(&uid);
                process.workers[id.name] =
                    Worker::Reading { id, begun: now, read: None, resend: false };
            }
            Some(Class::Rejected { .. } | Class::Throttled { .. }) => allocator.refused(&uid),
        }
    }

    /// Two live Nodes never hold the same block, unless another allocator gave it to one of them
    /// (`rule:block-has-one-holder`); and nothing is closed as unwritten that can be written
    /// (`rule:unknown-outcome-ends`).
    fn check(&self) -> Result<(), String> {
        let held = self.store.held();
        for (place, (one, block)) in held.iter().enumerate() {
            for (other, theirs) in &held[..place] {
                let is_ours =
                    !self.store.foreign.contains(one) && !self.store.foreign.contains(other);
                if one != other && block.overlaps(*theirs) && is_ours {
                    return Err(format!("{one:?} and {other:?} hold {block}"));
                }
            }
        }
        let Some(process) = &self.process else { return Ok(()) };
        let is_kept =
            [Assumption::Fence, Assumption::SecondLook].map(|it| self.bounds.has(it)) == [true; 2];
        for request in self.store.requests.iter().filter(|it| it.is_open()) {
            let node = process.allocator.unassigned.get(&request.id.uid());
            if is_kept && node.is_some_and(|it| !it.outcome().is_open()) {
                return Err(format!("{request:?} is open, and its Node counts as unwritten"));
            }
        }
        process.check()
    }
}

impl Model for World {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut may = |is_possible: bool, action: Action| {
            if is_possible {
                actions.push(action);
            }
        };
        let (left, tells) = (self.left, self.may_tell());
        let runs = self.process.is_some();
        let is_doubted = self.process.as_ref().is_some_and(|it| it.is_doubted);
        for name in 0..self.bounds.nodes {
            let node = self.store.nodes[name];
            may(tells && node.is_none(), Action::Join(name));
            let is_first = node.is_some_and(|it| !it.deleting);
            may(tells && is_first && left.deletions > 0, Action::Delete(name));
            may(tells && node.is_some_and(|it| it.deleting), Action::Remove(name));
            if left.foreign > 0 && tells && node.is_some_and(|it| it.block.is_none()) {
                for block in 0..self.bounds.source.blocks().len() {
                    may(true, Action::SetByOther(name, block));
                }
            }
            let known = self.process.as_ref().and_then(|it| it.shown[name]);
            match self.worker(name) {
                Some(Worker::Idle) => may(known.is_some() && !is_doubted, Action::Work(name)),
                Some(Worker::Ready { .. }) => may(true, Action::Send(name)),
                Some(Worker::Reading { read: None, .. }) => {
                    may(self.store.can_read(name), Action::Read(name));
                }
                Some(Worker::Reading { .. }) => may(true, Action::TakeRead(name)),
                Some(Worker::Waiting) | None => {}
            }
        }
        may(self.process.as_ref().is_some_and(|it| !it.events.is_empty()), Action::Watch);
        for (number, request) in self.store.requests.iter().enumerate() {
            let on_wire = request.place == Place::Wire;
            may(tells && request.is_open(), Action::Apply(number));
            may(on_wire && left.faults > 0, Action::Accept(number));
            may(on_wire && request.is_awaited && left.faults > 0, Action::Refuse(number));
            may(on_wire && !request.is_awaited, Action::Drop(number));
            let is_answered = !request.is_open();
            may(request.is_awaited && is_answered, Action::Answer(number));
            may(request.is_awaited && left.faults > 0, Action::Lose(number));
        }
        may(self.can_wait(), Action::Wait);
        may(runs && left.crashes > 0, Action::Crash);
        may(!runs && self.can_start(), Action::Start);
        may(runs && left.deposed > 0, Action::Depose);
        for number in 0..self.late.len() {
            may(!self.bounds.has(Assumption::SecondLook), Action::SendLate(number));
        }
        may(left.restores > 0 && self.store.past.is_some(), Action::Restore);
        may(is_doubted, Action::Relist);
        for number in 0..self.bounds.source.cluster_cidrs() {
            may(left.drains > 0 && !self.store.draining[number], Action::Drain(number));
        }
        actions
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        let now = self.now;
        match action {
            Action::Join(name) => {
                let event = self.store.join(name);
                self.tell(Some(event));
            }
            Action::Delete(name) => {
                self.left.deletions -= 1;
                let node = self.store.nodes[name];
                let event = node.map(|it| self.store.set(Shown { deleting: true, ..it }));
                self.tell(event);
            }
            Action::Remove(name) => {
                let event = self.store.remove(name);
                self.tell(event);
            }
            Action::SetByOther(name, block) => self.set_by_other(name, block),
            Action::Drain(number) => self.drain(number),
            Action::Apply(number) => {
                let event = self.store.apply(number);
                self.tell(event);
            }
            Action::Accept(number) => {
                self.left.faults -= 1;
                self.store.requests[number].place = Place::Accepted(0);
            }
            Action::Refuse(number) => {
                self.left.faults -= 1;
                self.store.requests[number].place = Place::Answered(429);
            }
            Action::Drop(number) => self.store.requests[number].place = Place::Answered(0),
            Action::Answer(number) => {
                let request = &self.store.requests[number];
                let Place::Answered(code) = request.place else { return Ok(()) };
                let class = request.class(code);
                self.answer(number, Some(class));
            }
            Action::Lose(number) => {
                self.left.faults -= 1;
                self.answer(number, None);
            }
            Action::Send(name) => self.send(name)?,
            Action::Read(name) => {
                let found = self.store.read(name).ok_or(Absent);
                if let Some(process) = &mut self.process
                    && let Worker::Reading { read, .. } = &mut process.workers[name]
                {
                    *read = Some(found);
                }
            }
            Action::Wait => self.wait(),
            Action::Crash => {
                self.left.crashes -= 1;
                self.process = None;
                self.store.requests.iter_mut().for_each(|it| it.is_awaited = false);
            }
            Action::Start => {
                // The write of the lease was stored behind what was accepted before.
                while let Some(number) =
                    self.store.requests.iter().position(|it| matches!(it.place, Place::Accepted(_)))
                {
                    let _no_watch = self.store.apply(number);
                }
                self.process = Some(Process::start(self.bounds.source, &self.store, now));
            }
            Action::Depose => self.depose(),
            Action::SendLate(number) => {
                let (id, block) = self.late.remove(number);
                let (left, place) = (PATCH_LIMIT, Place::Wire);
                self.store.requests.push(Request { id, block, left, place, is_awaited: false });
            }
            Action::Restore => self.restore(),
            Action::Relist => {
                // All users of the cache begin anew with the list.
                self.process = Some(Process::start(self.bounds.source, &self.store, now));
            }
            Action::Watch | Action::Work(_) | Action::TakeRead(_) => {
                let Some(process) = &mut self.process else { return Ok(()) };
                match action {
                    Action::Work(name) => process.work(name, now),
                    Action::TakeRead(name) => process.take_read(name, now),
                    _ => process.watch(now),
                }
            }
        }
        self.store.forget();
        if self.left.restores == 0 {
            self.store.past = None;
        }
        if self.bounds.has(Assumption::SecondLook) {
            self.late.clear();
        }
        self.check()
    }

    fn settles(&self) -> Result<(), String> {
        self.check_settled()
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.left, &self.store, &self.late).hash(&mut hasher);
        self.process.is_some().hash(&mut hasher);
        if let Some(process) = &self.process {
            process.hash_into(&mut hasher, self.now);
        }
        hasher.finish()
    }

    fn kind(action: Action) -> &'static str {
        action.kind()
    }
}

/// Identifies a Node in a way that a trace can be read by.
impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.uid())
    }
}
