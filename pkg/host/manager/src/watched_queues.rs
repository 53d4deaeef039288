//! The queues of a controller that are worked on, and how they are: for its health check, since code that
//! blocks its thread cannot be cut off at the limit of its key (rule:stuck-worker-is-unhealthy), and for
//! its debug page.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use workqueue::{Key, WorkQueue};

/// A worker that holds a key for so many times its limit is stuck.
const STUCK: u32 = 5;

type Question = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// A queue that is worked on.
struct Watched {
    id: u64,
    stuck: Question,
    told: Box<dyn Fn() -> String + Send + Sync>,
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
                format!("a worker of queue {name} has been stuck at one key for {seconds} s")
            })
        };
        let mut watched = self.watched.lock();
        let id = watched.last().map_or(0, |last| last.id + 1);
        let told = Box::new(move || tell(&asked));
        watched.push(Watched { id, stuck: Box::new(stuck), told });
        Watching { queues: self.clone(), id }
    }

    /// Says of the first queue with a stuck worker that it has one.
    pub(crate) fn check(&self) -> Result<(), String> {
        let watched = self.watched.lock();
        watched.iter().find_map(|it| (it.stuck)()).map_or(Ok(()), Err)
    }

    /// A line for each queue.
    pub(crate) fn told(&self) -> Vec<String> {
        self.watched.lock().iter().map(|it| (it.told)()).collect()
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

fn tell<K: Key>(queue: &WorkQueue<K>) -> String {
    let (name, due) = (queue.name(), queue.len());
    let longest = queue.longest_running().as_secs_f64();
    let failed = queue.last_failure().map_or_else(
        || "none has failed yet".to_owned(),
        |last| {
            let ago = last.at.elapsed().as_secs();
            format!("the last failure was {:?} {ago} s ago: {:?}", last.key, last.error)
        },
    );
    format!("queue {name}: {due} keys are due, the longest in hand is for {longest:.1} s, {failed}")
}
