//! Every sequence of what producers, workers and time do on the real queue with its wake-ups.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use prometheus::Registry;
use resilience::Jitter;
use state_explorer::{Model, explore, hash_of};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::advance;

use super::super::*;
use crate::schedule::tests::Naive;

const WORKERS: usize = 2;
/// Seconds of [`Action::AddAfter`], and the waits after failures.
const LATER: u64 = 2;
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(2), Jitter::None);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Add(u8),
    AddAfter(u8),
    /// A worker asks for a key, or looks again after it was woken.
    Poll(usize),
    /// A worker that waits goes away, and comes back some time.
    Leave(usize),
    Done(usize),
    Fail(usize),
    /// Time passes up to the next deadline.
    Pass,
    ShutDown,
}

/// Number of keys, and how often an action may happen.
#[derive(Clone, Copy)]
struct Bounds {
    keys: u8,
    later: usize,
    failures: usize,
}

/// A sequence of actions, which is played from the start, and what it leads to.
#[derive(Clone)]
struct Sequence {
    bounds: Bounds,
    actions: Vec<Action>,
    possible: Vec<Action>,
    fingerprint: u64,
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

enum Worker {
    Idle,
    Waiting(Pin<Box<dyn Future<Output = Option<Item<u8>>>>>, Arc<Woken>),
    Working(Item<u8>),
    /// The queue was shut down.
    Ended,
}

impl Worker {
    fn is_woken(&self) -> bool {
        matches!(self, Self::Waiting(_, woken) if woken.0.load(Ordering::Relaxed))
    }
}

struct World {
    queue: WorkQueue<u8>,
    workers: [Worker; WORKERS],
    /// Workers that wait, in the order in which they began to.
    line: Vec<usize>,
    keys: Vec<Naive>,
    failures: Vec<u32>,
    is_shut_down: bool,
    now: u64,
}

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    static METRICS: QueueMetrics = QueueMetrics::new(&Registry::new()).unwrap();
}

impl World {
    fn new(keys: u8) -> Self {
        let queue = METRICS.with(|metrics| WorkQueue::new("test", BACKOFF, metrics));
        queue.start_timer();
        Self {
            queue,
            workers: [const { Worker::Idle }; WORKERS],
            line: Vec::new(),
            keys: vec![Naive::default(); keys.into()],
            failures: vec![0; keys.into()],
            is_shut_down: false,
            now: 0,
        }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for key in 0..self.keys.len() {
            let key = u8::try_from(key).unwrap();
            actions.extend([Action::Add(key), Action::AddAfter(key)]);
        }
        for (number, worker) in self.workers.iter().enumerate() {
            match worker {
                Worker::Idle => actions.push(Action::Poll(number)),
                Worker::Waiting(..) => {
                    actions.push(Action::Leave(number));
                    actions.extend(worker.is_woken().then_some(Action::Poll(number)));
                }
                Worker::Working(_) => actions.extend([Action::Done(number), Action::Fail(number)]),
                Worker::Ended => {}
            }
        }
        let is_awaited = !self.is_shut_down && self.keys.iter().any(|key| key.returns.is_some());
        actions.extend(is_awaited.then_some(Action::Pass));
        actions.extend((!self.is_shut_down).then_some(Action::ShutDown));
        actions
    }

    /// The model of a key changes with an open queue only.
    fn expect(&mut self, key: u8, change: impl FnOnce(&mut Naive, u64)) {
        if !self.is_shut_down {
            change(&mut self.keys[usize::from(key)], self.now);
        }
    }

    async fn step(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Add(key) => {
                self.queue.add(key);
                self.expect(key, Naive::want);
            }
            Action::AddAfter(key) => {
                self.queue.add_after(key, Duration::from_secs(LATER));
                self.expect(key, |it, now| it.come_back(now + LATER));
            }
            Action::Poll(worker) => self.poll(worker)?,
            Action::Leave(worker) => {
                self.workers[worker] = Worker::Idle;
                self.line.retain(|it| *it != worker);
            }
            Action::Done(worker) | Action::Fail(worker) => {
                let worker = &mut self.workers[worker];
                if let Worker::Working(item) = std::mem::replace(worker, Worker::Idle) {
                    self.end(&item, action);
                }
            }
            Action::Pass => {
                let next = self.keys.iter().filter_map(|key| key.returns).min();
                let next = next.unwrap_or(self.now);
                advance(Duration::from_secs(next - self.now)).await;
                self.now = next;
            }
            Action::ShutDown => {
                self.queue.shut_down();
                self.is_shut_down = true;
                for key in &mut self.keys {
                    (key.wanted, key.returns) = (false, None);
                }
            }
        }
        let wakes_timer = matches!(
            action,
            Action::AddAfter(_) | Action::Fail(_) | Action::Pass | Action::ShutDown
        );
        // The timer runs, and looks again.
        for _ in 0..if wakes_timer { 3 } else { 0 } {
            yield_now().await;
        }
        self.keys.iter_mut().for_each(|key| key.pass(self.now));
        self.check()
    }

    /// A worker is done with a key.
    fn end(&mut self, item: &Item<u8>, action: Action) {
        let place = usize::from(**item);
        if let Action::Fail(_) = action {
            let wait = 1 + u64::from(self.failures[place].min(1));
            self.failures[place] += 1;
            self.queue.retry(item, Duration::ZERO);
            self.expect(**item, |it, now| it.come_back(now + wait));
        } else {
            self.failures[place] = 0;
            self.queue.forget(item);
        }
        self.keys[place].in_hand = false;
    }

    fn poll(&mut self, number: usize) -> Result<(), String> {
        let worker = std::mem::replace(&mut self.workers[number], Worker::Idle);
        let (mut next, woken) = match worker {
            Worker::Waiting(next, woken) => (next, woken),
            _ => {
                let queue = self.queue.clone();
                let next = Box::pin(async move { queue.next().await });
                (next as Pin<Box<dyn Future<Output = _>>>, Arc::default())
            }
        };
        self.line.retain(|it| *it != number);
        woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&woken));
        self.workers[number] = match next.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {
                self.line.push(number);
                Worker::Waiting(next, woken)
            }
            Poll::Ready(None) if self.is_shut_down => Worker::Ended,
            Poll::Ready(None) => return Err("a worker ends, and the queue runs".to_owned()),
            Poll::Ready(Some(item)) => {
                let model = &mut self.keys[usize::from(*item)];
                if !model.is_takeable() {
                    return Err(format!("key {} is handed out: {model:?}", *item));
                }
                (model.in_hand, model.wanted) = (true, false);
                Worker::Working(item)
            }
        };
        Ok(())
    }

    /// All keys that can be taken are in the queue, and a worker that waits is woken for one.
    fn check(&self) -> Result<(), String> {
        let wanted = self.keys.iter().filter(|key| key.wanted).count();
        if self.queue.len() != wanted {
            return Err(format!("{} keys are due instead of {wanted}", self.queue.len()));
        }
        let next = self.keys.iter().filter_map(|key| key.returns).min();
        let first = self.queue.inner.schedule.lock().next_return();
        let left = first.map(|at| at.saturating_duration_since(Instant::now()).as_secs());
        if left != next.map(|at| at - self.now) {
            return Err(format!("the next key comes in {left:?} s, and {next:?} is wanted"));
        }
        let waits = !self.line.is_empty();
        let is_woken = self.workers.iter().any(Worker::is_woken);
        let is_takeable = self.keys.iter().any(Naive::is_takeable);
        if waits && !is_woken && (is_takeable || self.is_shut_down) {
            return Err("a worker sleeps, and its wake-up is lost".to_owned());
        }
        let sleeps = |worker: &Worker| matches!(worker, Worker::Waiting(..)) && !worker.is_woken();
        if self.is_shut_down && self.workers.iter().any(sleeps) {
            return Err("a worker sleeps after the end of the queue".to_owned());
        }
        Ok(())
    }

    /// Workers that take and end what they can: in the end no key is left.
    async fn settle(&mut self) -> Result<(), String> {
        for _ in 0..50 {
            let actions = self.actions();
            let is_idle = |action: &&Action| match action {
                Action::Poll(worker) => self.workers[*worker].is_woken() || self.line.is_empty(),
                Action::Done(_) => true,
                _ => false,
            };
            let last = || actions.iter().find(|action| matches!(action, Action::Pass));
            match actions.iter().find(is_idle).or_else(last) {
                Some(action) => self.step(*action).await?,
                None => break,
            }
        }
        let is_left = self.keys.iter().any(|key| key.wanted || key.returns.is_some());
        if is_left { Err(format!("left: {:?}", self.keys)) } else { Ok(()) }
    }

    /// All that the future depends on, with keys and workers in each order: they have none of their own.
    fn fingerprint(&self) -> u64 {
        let keys: Vec<u8> = (0..u8::try_from(self.keys.len()).unwrap()).collect();
        let names = permutations(&keys);
        // Its first field says whether there is a wake-up that no worker has got yet.
        let ready = format!("{:?}", self.queue.inner.ready);
        let ready = ready.split(',').next().unwrap_or_default();
        let orders = permutations(&[0, 1]);
        let pairs = names.iter().flat_map(|names| orders.iter().map(move |order| (names, order)));
        pairs.map(|(names, order)| self.hash_as(names, order, ready)).min().unwrap_or_default()
    }

    fn hash_as(&self, names: &[u8], workers: &[u8], ready: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        let name = |key: &u8| names[usize::from(*key)];
        self.queue.inner.schedule.lock().hash_into(Instant::now(), name, &mut hasher);
        let mut failures = vec![0; names.len()];
        for (key, count) in self.failures.iter().enumerate() {
            failures[usize::from(names[key])] = (*count).min(1);
        }
        let line: Vec<u8> = self.line.iter().map(|worker| workers[*worker]).collect();
        (ready, failures, line, self.is_shut_down).hash(&mut hasher);
        for number in workers {
            let worker = &self.workers[usize::from(*number)];
            match worker {
                Worker::Idle => 0_u8.hash(&mut hasher),
                Worker::Waiting(..) => (1_u8, worker.is_woken()).hash(&mut hasher),
                Worker::Working(item) => (2_u8, name(item)).hash(&mut hasher),
                Worker::Ended => 3_u8.hash(&mut hasher),
            }
        }
        hasher.finish()
    }
}

/// All orders of these keys.
fn permutations(keys: &[u8]) -> Vec<Vec<u8>> {
    let Some((first, rest)) = keys.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in permutations(rest) {
        for place in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(place, *first);
            all.push(longer);
        }
    }
    all
}

impl Sequence {
    fn new(bounds: Bounds) -> Self {
        let mut start = Self { bounds, actions: Vec::new(), possible: Vec::new(), fingerprint: 0 };
        start.play(false).unwrap();
        start
    }

    /// Notes what may follow.
    fn note(&mut self, world: &World) {
        let happened = |of: fn(&&Action) -> bool| self.actions.iter().filter(of).count();
        let later = self.bounds.later - happened(|it| matches!(it, Action::AddAfter(_)));
        let failures = self.bounds.failures - happened(|it| matches!(it, Action::Fail(_)));
        self.possible = world.actions();
        self.possible.retain(|action| match action {
            Action::AddAfter(_) => later > 0,
            Action::Fail(_) => failures > 0,
            _ => true,
        });
        self.fingerprint = hash_of(&(world.fingerprint(), later, failures));
    }

    fn play(&mut self, is_settled: bool) -> Result<(), String> {
        RUNTIME.with(|runtime| {
            runtime.block_on(async {
                let mut world = World::new(self.bounds.keys);
                for action in &self.actions {
                    world.step(*action).await?;
                }
                self.note(&world);
                if is_settled { world.settle().await } else { Ok(()) }
            })
        })
    }
}

impl Model for Sequence {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        self.possible.clone()
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        self.actions.push(action);
        self.play(false)
    }

    fn settles(&self) -> Result<(), String> {
        self.clone().play(true)
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn kind(action: Action) -> &'static str {
        match action {
            Action::Add(_) => "add",
            Action::AddAfter(_) => "add after",
            Action::Poll(_) => "poll",
            Action::Leave(_) => "leave",
            Action::Done(_) => "done",
            Action::Fail(_) => "fail",
            Action::Pass => "pass",
            Action::ShutDown => "shut down",
        }
    }
}

fn explored(bounds: Bounds, limit: usize) {
    let explored = explore(Sequence::new(bounds), limit, 16);
    let Bounds { keys, later, failures } = bounds;
    let bounds = format!("key: {keys}, worker: 2, add after: {later}, failure: {failures}");
    explored.report("C10", &bounds);
    assert!(explored.is_complete && explored.settled > 100, "{explored:?}");
    assert_eq!(explored.happened.len(), 8, "{explored:?}");
}

#[test]
fn no_wake_up_is_lost_and_each_key_is_in_one_hand() {
    explored(Bounds { keys: 3, later: 1, failures: 1 }, 20_000);
}

#[test]
#[ignore = "tens of thousands of states"]
fn more_failures_and_deadlines_lose_no_wake_up() {
    explored(Bounds { keys: 3, later: 2, failures: 1 }, 1_000_000);
}
