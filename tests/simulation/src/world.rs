//! [`World`]: the store, the API servers in front of it, the processes, and what is on the wire between
//! them. Each step is judged at once by [`crate::claims`].

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::RngExt as _;
use resilience::{Fence, Halt, ReadClocks};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{Answer, answer};
use crate::call::Call;
use crate::claims::{Claims, Sent};
use crate::cloud::Aws;
use crate::members::Members;
use crate::plan::{LAG, Number, Plan, REQUEST};
use crate::sieve::Record;
use crate::store::Store;

/// Number of API servers.
const FRONTS: usize = 2;

/// What stands for a text in the trace.
pub(crate) fn digest(text: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

/// An API server: when it gets to know each version.
struct Front {
    shows: Vec<(u64, Instant)>,
    stalled_until: Option<Instant>,
    /// It shows nothing newer than this version.
    frozen: Option<u64>,
}

/// A process, dead or alive.
pub(crate) struct Process {
    pub(crate) identity: String,
    /// Which of the replicas it is.
    pub(crate) slot: usize,
    pub(crate) is_alive: bool,
    pub(crate) fence: Fence,
    pub(crate) shutdown: CancellationToken,
    pub(crate) died: CancellationToken,
    pub(crate) halt: Halt,
    pub(crate) task: Option<AbortHandle>,
    /// A watch broke its contract.
    pub(crate) is_misled: bool,
    /// The versions up to which its watches of Nodes came, and when.
    learned: Vec<(u64, Instant)>,
    front: usize,
}

impl Process {
    pub(crate) fn new(identity: String, slot: usize, clocks: ReadClocks) -> Self {
        Self {
            identity,
            slot,
            is_alive: true,
            fence: Fence::closed_by(clocks),
            shutdown: CancellationToken::new(),
            died: CancellationToken::new(),
            halt: Halt::on(clocks),
            task: None,
            is_misled: false,
            learned: Vec::new(),
            front: slot,
        }
    }

    /// It goes on after it stood still, unless it is dead.
    pub(crate) fn resume(&self) {
        if self.is_alive {
            self.halt.resume();
        }
    }

    /// A watch of Nodes came to this version.
    pub(crate) fn learn(&mut self, version: u64) {
        if self.learned.last().is_none_or(|(known, _)| *known < version) {
            self.learned.push((version, Instant::now()));
        }
    }

    /// The version of the Nodes that it certainly knows: what came now may not be taken in yet.
    pub(crate) fn knows(&self) -> u64 {
        if self.is_misled {
            return 0;
        }
        let now = Instant::now();
        let known = self.learned.partition_point(|(_, at)| *at < now);
        known.checked_sub(1).map_or(0, |last| self.learned[last].0)
    }
}

/// The state of a run.
pub(crate) struct State {
    pub(crate) plan: Plan,
    pub(crate) store: Store,
    pub(crate) processes: Vec<Process>,
    pub(crate) claims: Claims,
    pub(crate) members: Members,
    /// Of plans with an AWSCluster.
    pub(crate) aws: Option<Aws>,
    /// Faults happen.
    pub(crate) is_busy: bool,
    /// What happened, by number.
    pub(crate) happened: Vec<Number>,
    /// How often each kind of fault happened.
    pub(crate) reach: BTreeMap<&'static str, u64>,
    pub(crate) violation: Option<String>,
    /// Requests of processes that wrote something else than a Lease or a heartbeat.
    pub(crate) writes: u64,
    /// Heartbeats of members.
    pub(crate) heartbeats: u64,
    /// A watch did not send an addition or deletion.
    pub(crate) lost_events: bool,
    fronts: [Front; FRONTS],
    requests: u64,
    /// How often each request was sent.
    asked: BTreeMap<String, u64>,
    began: Instant,
    /// How often this was judged.
    pub(crate) steps: u64,
    pub(crate) trace: Vec<String>,
    pub(crate) record: Record,
    /// Watches that a script held go on.
    pub(crate) has_held: bool,
}

/// Clones are the same.
#[derive(Clone)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    /// The store has a newer version.
    commits: Arc<Notify>,
    violated: CancellationToken,
}

impl World {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (store, now) = (Store::default(), Instant::now());
        let shows = vec![(store.revision(), now)];
        let front = || Front { shows: shows.clone(), stalled_until: None, frozen: None };
        let state = State {
            plan: plan.clone(),
            fronts: [front(), front()],
            store,
            processes: Vec::new(),
            claims: Claims::default(),
            members: Members::default(),
            aws: plan.has_aws().then(|| Aws::new(plan.seed)),
            is_busy: plan.script.is_none(),
            happened: Vec::new(),
            reach: BTreeMap::new(),
            violation: None,
            writes: 0,
            heartbeats: 0,
            lost_events: false,
            requests: 0,
            asked: BTreeMap::new(),
            began: now,
            steps: 0,
            trace: Vec::new(),
            record: Record::default(),
            has_held: false,
        };
        let (state, violated) = (Arc::new(Mutex::new(state)), CancellationToken::new());
        Self { state, commits: Arc::default(), violated }
    }

    /// Changes or reads the state, and judges it afterwards.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let before = state.store.revision();
        let result = work(&mut state);
        state.after(before);
        if state.violation.is_some() {
            self.violated.cancel();
        }
        let is_newer = state.store.revision() != before;
        drop(state);
        if is_newer {
            self.commits.notify_waiters();
        }
        result
    }

    /// Waits for the first violation of a claim.
    pub(crate) async fn violated(&self) {
        self.violated.cancelled().await;
    }

    /// Watches may show what they did not show before.
    pub(crate) fn wake_watches(&self) {
        self.commits.notify_waiters();
    }

    /// Wakes at the next change of the store.
    pub(crate) fn committed(&self) -> Notified<'_> {
        self.commits.notified()
    }
}

impl State {
    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.plan.keeps_trace {
            let line = format!("{:9.3} {}", self.elapsed().as_secs_f64(), line());
            self.trace.push(line);
        }
    }

    /// Counts a fault that happens.
    pub(crate) fn count(&mut self, number: Number, what: &'static str) {
        if self.happened.last() != Some(&number) {
            self.happened.push(number);
        }
        *self.reach.entry(what).or_default() += 1;
    }

    /// A claim is violated.
    pub(crate) fn violate(&mut self, claim: String) {
        if self.violation.is_none() {
            self.note(|| format!("VIOLATED {claim}"));
            self.violation = Some(claim);
        }
    }

    /// How often each kind of fault happened, and how many terms there were.
    pub(crate) fn reach_with_terms(&self) -> BTreeMap<&'static str, u64> {
        let more = [("term", self.claims.terms() as u64), ("PATCH sent", self.claims.sent)];
        self.reach.iter().map(|(what, count)| (*what, *count)).chain(more).collect()
    }

    /// An id of the next request, and the number of its fate, which does not depend on other requests.
    pub(crate) fn next_request(&mut self, process: usize, call: &Call) -> (u64, Number) {
        self.requests += 1;
        let number = self.next_of(format!("{process} {} {}", call.method, call.path));
        (self.requests, Number(REQUEST, number))
    }

    /// A number of the next one of equal requests, which does not depend on other requests.
    pub(crate) fn next_of(&mut self, key: String) -> u64 {
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        let count = self.asked.entry(key).or_default();
        *count += 1;
        count.hash(&mut hash);
        hash.finish() % 1_000_000_000
    }

    /// The API server for a request of a process.
    pub(crate) fn front(&mut self, process: usize, is_moved: bool) -> usize {
        let front = &mut self.processes[process].front;
        *front = (*front + usize::from(is_moved)) % FRONTS;
        *front
    }

    /// An API server gets to know nothing new until then.
    pub(crate) fn stall(&mut self, front: usize, until: Instant) {
        self.fronts[front % FRONTS].stalled_until = Some(until);
    }

    /// The version that an API server shows now.
    pub(crate) fn shown(&self, front: usize) -> u64 {
        let (Front { shows, frozen, .. }, now) = (&self.fronts[front], Instant::now());
        let known = shows.partition_point(|(_, at)| *at <= now);
        let known = known.checked_sub(1).map_or(0, |last| shows[last].0);
        known.min(frozen.unwrap_or(known))
    }

    /// No API server shows anything newer than this version from now on, or each shows what it knows again.
    pub(crate) fn freeze(&mut self, at: Option<u64>) {
        self.note(|| format!("API servers are frozen at {at:?}"));
        self.fronts.iter_mut().for_each(|front| front.frozen = at);
    }

    /// Since when API servers know this version, by the start of the run.
    pub(crate) fn shown_since(&self, version: u64) -> Duration {
        let shows = self.fronts.iter().filter_map(|front| {
            front.shows.iter().find(|(known, _)| *known >= version).map(|(_, at)| *at)
        });
        shows.max().map_or(Duration::ZERO, |at| at.duration_since(self.began))
    }

    /// When an API server shows something newer than this version.
    pub(crate) fn shows_newer(&self, front: usize, than: u64) -> Option<Instant> {
        let Front { shows, frozen, .. } = &self.fronts[front];
        if frozen.is_some_and(|at| at <= than) {
            return None;
        }
        shows.get(shows.partition_point(|(version, _)| *version <= than)).map(|(_, at)| *at)
    }

    /// Carries out a request of a process, or of the world itself.
    pub(crate) fn apply(&mut self, front: usize, call: &Call) -> Answer {
        let cached = self.shown(front);
        answer(&mut self.store, call, cached)
    }

    /// What a process has sent and the server may yet apply is known to the claims.
    /// When the process decided to send it, it had been `shown` Nodes up to this version.
    pub(crate) fn send(&mut self, id: u64, process: usize, call: &Call, shown: u64) {
        if let Some(sent) = Sent::of(process, call) {
            let said = self.claims.send(id, sent, &self.store, shown);
            said.unwrap_or_else(|claim| self.violate(claim));
        }
    }

    /// Judges what changed.
    fn after(&mut self, before: u64) {
        self.steps += 1;
        let now = Instant::now();
        for revision in before + 1..=self.store.revision() {
            for (nth, front) in self.fronts.iter_mut().enumerate() {
                let number = revision * FRONTS as u64 + nth as u64;
                let lag = self.plan.rng(Number(LAG, number)).random_range(1..12);
                let at = now + Duration::from_millis(lag);
                let last = front.shows.last().map_or(at, |(_, last)| *last);
                let at = at.max(last).max(front.stalled_until.unwrap_or(at));
                front.shows.push((revision, at));
            }
        }
        let open = self.processes.iter().enumerate();
        let open = open.filter(|(_, it)| it.is_alive && !it.fence.remaining().is_zero());
        let open: Vec<_> = open.map(|(process, _)| process).collect();
        if open.len() > 1 {
            self.violate(format!("C5: the fences of processes {open:?} are open"));
        }
        if before != self.store.revision()
            && let Err(claim) = self
                .claims
                .judge(&self.store)
                .and_then(|()| self.claims.judge_gone(&self.store, before))
        {
            self.violate(claim);
        }
    }
}
