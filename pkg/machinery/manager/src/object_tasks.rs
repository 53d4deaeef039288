//! [`ObjectTasks`]: a task per object beside the queue, such as one that asks a member cluster
//! every ten seconds whether it is well.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use backoff::{Backoff, Jitter, Series};
use panics::{Panic, contain};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::error;
use workqueue::Key;

use crate::Context;

/// Between a panic of a task and its next start.
const PAUSES: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(300), Jitter::Above(0.2));
/// A task that runs for so long after a pause has recovered.
const RECOVERED: Duration = Duration::from_secs(60);

/// The tasks of one run by their keys, at most one of each; made by [`Context::object_tasks`].
/// Clones share them.
///
/// A task is dropped at its next await when it is ended and when the run stops, so it must not
/// write: nobody would know what became of it. What is to be written goes into the queue. One that
/// panics is counted, and started again after a pause (rule:panicking-task-starts-anew).
#[derive(Clone)]
pub struct ObjectTasks<K> {
    context: Context,
    running: Arc<Mutex<Running<K>>>,
}

struct Running<K> {
    by_key: HashMap<K, Task>,
    started: u64,
}

struct Task {
    id: u64,
    end: CancellationToken,
}

impl Context {
    /// Tasks of single objects beside the workers, none of them begun.
    pub fn object_tasks<K: Key>(&self) -> ObjectTasks<K> {
        ObjectTasks::new(self.clone())
    }
}

impl<K: Key> ObjectTasks<K> {
    fn new(context: Context) -> Self {
        let running = Running { by_key: HashMap::new(), started: 0 };
        Self { context, running: Arc::new(Mutex::new(running)) }
    }

    /// Starts the task of this key unless it has one; `task` makes it, again after each panic.
    /// False when there is one already.
    #[track_caller]
    pub fn start<F>(&self, key: K, task: impl Fn() -> F + Send + Sync + 'static) -> bool
    where
        F: Future<Output = ()> + Send,
    {
        let mut running = self.running.lock();
        if running.by_key.contains_key(&key) {
            return false;
        }
        running.started += 1;
        let (id, end) = (running.started, self.context.stop.child_token());
        running.by_key.insert(key.clone(), Task { id, end: end.clone() });
        drop(running);
        let tasks = self.clone();
        self.context.spawn(async move {
            end.run_until_cancelled(tasks.restart_after_panics(&key, task)).await;
            tasks.forget(&key, id);
        });
        true
    }

    /// Ends the task of this key; false when it has none. The key may be given another at once.
    pub fn end(&self, key: &K) -> bool {
        let ended = self.running.lock().by_key.remove(key);
        ended.map(|task| task.end.cancel()).is_some()
    }

    /// Whether this key has a task.
    pub fn contains(&self, key: &K) -> bool {
        self.running.lock().by_key.contains_key(key)
    }

    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.running.lock().by_key.len()
    }

    /// True when there is no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    async fn restart_after_panics<F>(&self, key: &K, task: impl Fn() -> F + Sync)
    where
        F: Future<Output = ()> + Send,
    {
        let mut panics = Series::new(PAUSES).forget_after(RECOVERED);
        // The call is contained as well as the future it makes.
        while let Err(panic) = contain(async { task().await }).await {
            let pause = panics.fail(Instant::now());
            self.count(key, panic, pause);
            sleep(pause).await;
        }
    }

    fn count(&self, key: &K, panic: Panic, pause: Duration) {
        let work = &self.context.work;
        let verdict = work.panics.record(format!("task/{key}"), &panic);
        if let Some(others) = verdict.show {
            error!(object = %key, %panic, others, ?pause, "A task panicked and is started again");
        }
        if verdict.exceeded {
            work.tasks.give_up(panic);
        }
    }

    /// It ended by itself; the key may have another one by now.
    fn forget(&self, key: &K, id: u64) {
        let mut running = self.running.lock();
        if running.by_key.get(key).is_some_and(|task| task.id == id) {
            running.by_key.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
