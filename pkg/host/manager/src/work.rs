//! [`Work`]: state of a run for the manager. [`Tasks`] are tasks in addition to the workers,
//! [`WatchedQueues`] the queues of the workers, [`MadeOnce`] values that are registered once although
//! the controller is restarted.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use objects::OpenWrites;
use parking_lot::Mutex;
use resilience::panics::{Panic, contain};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};
use workqueue::{ControllerMetrics, Key, PanicLimit, QueueMetrics, WorkQueue};

use crate::permissions::PermissionCheck;

/// State of a run for the manager.
#[derive(Clone)]
pub(crate) struct Work {
    /// Canonical name of the controller.
    pub(crate) controller: &'static str,
    pub(crate) queues: QueueMetrics,
    pub(crate) metrics: ControllerMetrics,
    /// Kept over fresh starts.
    pub(crate) panics: PanicLimit,
    /// Kept over fresh starts.
    pub(crate) registered: MadeOnce,
    /// Writes of unknown outcome; a run ends when they are settled.
    pub(crate) open_writes: OpenWrites,
    pub(crate) watched: WatchedQueues,
    pub(crate) tasks: Tasks,
    pub(crate) rights: PermissionCheck,
}

/// One value of each type and place in the code that asks for it, kept over the runs of one
/// controller; clones share them.
#[derive(Clone, Default)]
pub(crate) struct MadeOnce(Arc<Mutex<HashMap<Asked, Slot>>>);

/// By type alone, two counters would be one.
type Asked = (TypeId, &'static Location<'static>);

/// A lock of its own: who makes a value may ask for another one.
type Slot = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

impl MadeOnce {
    /// The value of this type that the caller got before, made now if it is missing.
    #[track_caller]
    pub(crate) fn get_or_make<T, E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E>
    where
        T: Clone + Send + 'static,
    {
        let asked = (TypeId::of::<T>(), Location::caller());
        let slot = Arc::clone(self.0.lock().entry(asked).or_default());
        let mut made = slot.lock();
        if let Some(known) = made.as_ref().and_then(|value| value.downcast_ref::<T>()) {
            return Ok(known.clone());
        }
        let value = make()?;
        *made = Some(Box::new(value.clone()));
        Ok(value)
    }
}

/// Time for dropped tasks to be gone, at the least.
const DROPPING: Duration = Duration::from_secs(1);

/// The tasks of one run; clones share them.
#[derive(Clone)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    abort: CancellationToken,
    panics: PanicLimit,
    panicked: Arc<watch::Sender<Option<Panic>>>,
    /// Where the code stands that began each.
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    begun: u64,
    places: BTreeMap<u64, &'static Location<'static>>,
}

impl Tasks {
    /// None yet; a panic of one is counted in `panics`.
    pub(crate) fn new(panics: PanicLimit) -> Self {
        Self {
            panics,
            tracker: TaskTracker::new(),
            abort: CancellationToken::new(),
            panicked: Arc::new(watch::Sender::new(None)),
            running: Arc::default(),
        }
    }

    #[track_caller]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let tasks = self.clone();
        let begun = Begun::note(&self.running, Location::caller());
        let contained = async move {
            let _begun = begun;
            let Some(Err(panic)) = tasks.abort.run_until_cancelled(contain(task)).await else {
                return;
            };
            tasks.panics.count();
            tasks.give_up(panic);
        };
        self.tracker.spawn(resilience::task(contained.instrument(Span::current())));
    }

    /// The run ends for this panic, which is counted already.
    pub(crate) fn give_up(&self, panic: Panic) {
        self.panicked.send_replace(Some(panic));
    }

    /// Waits until one of them has panicked, or the run was given up.
    pub(crate) async fn panicked(&self) -> Panic {
        let mut panicked = self.panicked.subscribe();
        loop {
            if let Some(panic) = panicked.borrow_and_update().clone() {
                return panic;
            }
            if panicked.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until all have ended by themselves.
    pub(crate) async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Where the code stands that began those that have not ended.
    pub(crate) fn places(&self) -> BTreeSet<String> {
        self.running.lock().places.values().map(ToString::to_string).collect()
    }

    /// Waits for the tasks as [`Tasks::ended`] and drops those that have not ended after `grace`. False when there is
    /// still one after as long again: it blocks its thread, so nothing can end it.
    pub(crate) async fn end_within(&self, grace: Duration) -> bool {
        if timeout(grace, self.ended()).await.is_ok() {
            return true;
        }
        self.abort.cancel();
        timeout(grace.max(DROPPING), self.ended()).await.is_ok()
    }

    /// All have ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.tracker.is_empty()
    }
}

/// A task that has not ended.
struct Begun {
    running: Arc<Mutex<Running>>,
    id: u64,
}

impl Begun {
    fn note(running: &Arc<Mutex<Running>>, place: &'static Location<'static>) -> Self {
        let mut noted = running.lock();
        noted.begun += 1;
        let id = noted.begun;
        noted.places.insert(id, place);
        drop(noted);
        Self { running: Arc::clone(running), id }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.running.lock().places.remove(&self.id);
    }
}

/// A worker that holds a key for so many times its limit is stuck.
const STUCK: u32 = 5;

type Question = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// A queue that is worked on.
struct Watched {
    id: u64,
    stuck: Question,
    page_line: Box<dyn Fn() -> String + Send + Sync>,
}

/// The queues of one controller that are worked on; clones share them.
#[derive(Clone, Default)]
pub(crate) struct WatchedQueues {
    watched: Arc<Mutex<Vec<Watched>>>,
}

impl WatchedQueues {
    /// Asks about this queue, whose keys have this limit, until the guard is dropped.
    pub(crate) fn watch<K: Key>(&self, queue: WorkQueue<K>, limit: Duration) -> Watching {
        let asked = queue.clone();
        let stuck = move || {
            let longest = queue.longest_running();
            let stuck = longest > limit.saturating_mul(STUCK);
            stuck.then(|| {
                let (name, seconds) = (queue.name(), longest.as_secs());
                format!("a worker of queue {name} is stuck: it has been handling the same key for {seconds} s")
            })
        };
        let mut watched = self.watched.lock();
        let id = watched.last().map_or(0, |last| last.id + 1);
        let page_line = Box::new(move || page_line_of(&asked));
        watched.push(Watched { id, stuck: Box::new(stuck), page_line });
        Watching { queues: self.clone(), id }
    }

    /// Says of the first queue with a stuck worker that it has one.
    pub(crate) fn check(&self) -> Result<(), String> {
        let watched = self.watched.lock();
        watched.iter().find_map(|it| (it.stuck)()).map_or(Ok(()), Err)
    }

    /// A line for each queue.
    pub(crate) fn page_lines(&self) -> Vec<String> {
        self.watched.lock().iter().map(|it| (it.page_line)()).collect()
    }
}

/// A queue that is asked about.
pub(crate) struct Watching {
    queues: WatchedQueues,
    id: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.queues.watched.lock().retain(|it| it.id != self.id);
    }
}

fn page_line_of<K: Key>(queue: &WorkQueue<K>) -> String {
    let (name, due) = (queue.name(), queue.len());
    let longest = queue.longest_running().as_secs_f64();
    let failed = queue.last_failure().map_or_else(
        || "no failure yet".to_owned(),
        |last| {
            let ago = last.at.elapsed().as_secs();
            format!("the last failure was {:?} {ago} s ago: {:?}", last.key, last.error)
        },
    );
    format!("queue {name}: {due} keys due, longest handling so far {longest:.1} s, {failed}")
}

#[cfg(test)]
mod tests;
