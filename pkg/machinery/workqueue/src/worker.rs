//! The worker loop, written once for all controllers.

use std::sync::Arc;
use std::time::Duration;

use panics::{Panic, contain};
use prometheus::IntCounter;
use thiserror::Error;
use tokio::task::JoinSet;
use tracing::{debug, error};

use crate::panic_limit::PanicLimit;
use crate::{Key, WorkQueue};

/// What a handled key needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until it is added again. Ends its row of failures.
    Done,
    /// Another look after this time. Ends its row of failures.
    After(Duration),
    /// It failed: another attempt after its backoff, but not before `at_least` has passed.
    Retry {
        /// Shortest wait, such as the server's `Retry-After`.
        at_least: Duration,
    },
}

/// A controller's part of the loop.
pub trait Reconcile: Send + Sync + 'static {
    /// Type of the queue's keys.
    type Key: Key;

    /// Brings the world of one key to its wanted state, from what the caches hold *now*. Called
    /// for one key by one worker at a time; different keys run side by side. Bounds its own
    /// waits: the loop sets no time limit, since only the controller knows what may be cut.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Next> + Send;
}

/// The workers of a queue panicked too often to be trusted further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "cannot keep the workers of queue {queue:?} running: {panics} panics within a minute, \
     the last at {location}; report it with the log lines \"Panic in a worker\""
)]
pub struct TooManyPanics {
    /// Name of the queue.
    pub queue: String,
    /// Panics counted within the last minute.
    pub panics: usize,
    /// Source file and line of the last one.
    pub location: String,
}

/// Handles the queue with that many workers (at least one) until it is shut down.
///
/// Returns once every worker has finished the key in its hand. A panic inside `reconcile` is
/// caught: it is counted in `panics`, logged once per place and minute, and the key is retried.
/// The first call installs a panic hook for the process that keeps the place of a contained panic
/// for that log line; any other panic goes to the hook that was there before.
///
/// Dropping the future aborts the workers at their next await.
///
/// # Errors
/// After five panics within a minute. The queue is shut down then, and the work in hand finished:
/// whoever restarts the controller builds its state and its queue anew.
pub async fn run_workers<R: Reconcile>(
    queue: WorkQueue<R::Key>,
    workers: usize,
    reconcile: Arc<R>,
    panics: IntCounter,
) -> Result<(), TooManyPanics> {
    let limit = Arc::new(PanicLimit::default());
    let mut running = JoinSet::new();
    for _ in 0..workers.max(1) {
        let (queue, reconcile) = (queue.clone(), Arc::clone(&reconcile));
        let (limit, panics) = (Arc::clone(&limit), panics.clone());
        running.spawn(async move {
            while let Some(item) = queue.next().await {
                match contain(async { reconcile.reconcile(&item).await }).await {
                    Ok(next) => plan(&queue, &item, next),
                    Err(caught) => {
                        panics.inc();
                        after_panic(&queue, &item, &limit, &caught);
                    }
                }
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            // Outside of `reconcile` there is nothing of a controller, so this is a bug of ours.
            panics.inc();
            error!(logger = "workqueue", queue = queue.name(), %error, "Worker ended by a panic");
            limit.exceed("the worker loop");
            queue.shut_down();
        }
    }
    match limit.exceeded() {
        None => Ok(()),
        Some((panics, location)) => {
            Err(TooManyPanics { queue: queue.name().to_owned(), panics, location })
        }
    }
}

fn plan<K: Key>(queue: &WorkQueue<K>, key: &K, next: Next) {
    match next {
        Next::Done => queue.forget(key),
        Next::After(delay) => {
            queue.forget(key);
            queue.add_after(key.clone(), delay);
        }
        Next::Retry { at_least } => {
            let delay = queue.retry(key, at_least);
            debug!(logger = "workqueue", queue = queue.name(), ?key, ?delay, "Retrying later");
        }
    }
}

fn after_panic<K: Key>(queue: &WorkQueue<K>, key: &K, limit: &PanicLimit, caught: &Panic) {
    let verdict = limit.record(&caught.location);
    if verdict.show {
        error!(
            logger = "workqueue",
            queue = queue.name(),
            ?key,
            location = caught.location,
            panic = caught.message,
            backtrace = caught.backtrace,
            "Panic in a worker"
        );
    }
    if verdict.exceeded {
        queue.shut_down();
    } else {
        queue.retry(key, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests;
