//! The tasks that a run has beside its workers.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use resilience::panics::{Panic, contain};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};
use workqueue::PanicLimit;

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
        self.tracker.spawn(contained.instrument(Span::current()));
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

    /// As [`Tasks::ended`], but what has not ended after `grace` is dropped. False when there is
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
