//! Which workers are stuck: code that blocks its thread cannot be cut off at the limit of its key,
//! so the controller's health check has to tell (rule:stuck-worker-is-unhealthy).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use workqueue::{Key, WorkQueue};

/// A worker that holds a key for so many times its limit is stuck.
const STUCK: u32 = 5;

type Question = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The queues of one controller that are worked on; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Stalls {
    watched: Arc<Mutex<Vec<(u64, Question)>>>,
}

impl Stalls {
    /// Asks about this queue, whose keys have this limit, until the guard is dropped.
    pub(crate) fn watch<K: Key>(&self, queue: WorkQueue<K>, limit: Duration) -> Watching {
        let question = move || {
            let longest = queue.longest_running();
            let stuck = longest > limit.saturating_mul(STUCK);
            stuck.then(|| {
                let (name, seconds) = (queue.name(), longest.as_secs());
                format!("a worker of queue {name} has been stuck at one key for {seconds} s")
            })
        };
        let mut watched = self.watched.lock();
        let id = watched.last().map_or(0, |(id, _)| id + 1);
        watched.push((id, Box::new(question)));
        Watching { stalls: self.clone(), id }
    }

    /// Says of the first queue with a stuck worker that it has one.
    pub(crate) fn check(&self) -> Result<(), String> {
        let watched = self.watched.lock();
        watched.iter().find_map(|(_, question)| question()).map_or(Ok(()), Err)
    }
}

/// A queue that is asked about.
pub(crate) struct Watching {
    stalls: Stalls,
    id: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stalls.watched.lock().retain(|(id, _)| *id != self.id);
    }
}
