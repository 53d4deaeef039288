//! The worker loop, written once for all controllers.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use resilience::panics::{Panic, contain};
use resilience::{LogGate, task};
use thiserror::Error;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span, debug, error, error_span, warn};

use crate::metrics::{ControllerMetrics, HandlingResult};
use crate::panic_limit::PanicLimit;
use crate::queue::{Item, WorkQueue};
use crate::{Key, Kind, Next, Retry};

/// Failures of a queue's keys are logged once in this time; the others at `-v=4`.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A controller's part of the loop.
pub trait Reconcile: Send + Sync + 'static {
    /// Type of the queue's keys.
    type Key: Key;

    /// Brings the world of one key to its wanted state, from what the caches hold *now*. Called
    /// for one key by one worker at a time; different keys run side by side.
    ///
    /// The future is dropped when it takes longer than [`WorkerOptions::limit`]. A write that is
    /// under way then, or when it panics, has an unknown outcome: the next call must look again.
    ///
    /// # Errors
    /// The key could not be handled and is tried again; any error converts.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Next, Retry>> + Send;
}

/// Waits until a key may be handled; `None` when it may be at once.
pub type Ready<K> =
    Box<dyn Fn(&K) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync>;

/// How a queue's keys are handled.
pub struct WorkerOptions<K> {
    /// How many keys are handled at once; at least one.
    pub workers: usize,
    /// How long one handling may take, `ready` included. After it the future is dropped and the
    /// key is tried again.
    pub limit: Duration,
    /// Asked before each handling; see `read-your-writes` in the rules of `kube-api`.
    pub ready: Option<Ready<K>>,
    /// Where results are counted.
    pub metrics: ControllerMetrics,
    /// Where panics are counted.
    pub panics: PanicLimit,
}

/// Many different keys of a queue panicked, so its state is not trusted further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "cannot keep the workers of queue {queue:?} running: many different keys panicked within a \
     minute, the last at {location}; report it with the log lines \"Panic in a worker\""
)]
pub struct TooManyPanics {
    /// Name of the queue.
    pub queue: String,
    /// Source file and line of the last one.
    pub location: String,
}

/// Handles the queue until it is shut down.
///
/// Returns once every worker has finished the key in its hand. Each key is handled in a span
/// `reconcile` with the field `object`. A panic inside `reconcile` is caught, logged once per place
/// and minute, and its key is kept away for a while.
///
/// Dropping the future aborts the workers at their next await.
///
/// # Errors
/// When many different keys panic (see [`PanicLimit`]). The queue is shut down then, and the work
/// in hand finished: a restarted controller builds a new state and a new queue.
pub async fn run_workers<R: Reconcile>(
    queue: WorkQueue<R::Key>,
    reconcile: Arc<R>,
    options: WorkerOptions<R::Key>,
) -> Result<(), TooManyPanics> {
    let count = options.workers.max(1);
    let pool = Arc::new(Pool {
        queue,
        reconcile,
        options,
        log: LogGate::new(LOG_EVERY),
        exceeded: OnceLock::new(),
    });
    let mut running = JoinSet::new();
    for _ in 0..count {
        let pool = Arc::clone(&pool);
        running.spawn(task(async move { pool.work().await }.instrument(Span::current())));
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            // Outside of `reconcile` there is nothing of a controller, so this is a bug of ours.
            pool.options.panics.count();
            error!(queue = pool.queue.name(), %error, "Worker ended by a panic");
            pool.give_up("the worker loop");
        }
    }
    pool.exceeded.get().map_or(Ok(()), |exceeded| Err(exceeded.clone()))
}

/// State that the workers of one queue share.
struct Pool<R: Reconcile> {
    queue: WorkQueue<R::Key>,
    reconcile: Arc<R>,
    options: WorkerOptions<R::Key>,
    log: LogGate,
    exceeded: OnceLock<TooManyPanics>,
}

impl<R: Reconcile> Pool<R> {
    async fn work(&self) {
        while let Some(item) = self.queue.next().await {
            let span = error_span!("reconcile", object = %*item);
            self.handle(item).instrument(span).await;
        }
    }

    async fn handle(&self, item: Item<R::Key>) {
        let started = Instant::now();
        let begun = AtomicBool::new(false);
        let turn = async {
            if self.wait_until_ready(&item).await {
                begun.store(true, Ordering::Relaxed);
                self.reconcile.reconcile(&item).await.map(Some)
            } else {
                Ok(None)
            }
        };
        let ended = contain(timeout(self.options.limit, turn)).await;
        // What was not begun has sent nothing.
        if begun.into_inner() && matches!(ended, Ok(Err(_)) | Err(_)) {
            self.queue.note_cut();
        }
        let outcome = match ended {
            Ok(Ok(Ok(Some(next)))) => self.finish(&item, next),
            // Shut down while it waited: nothing was begun.
            Ok(Ok(Ok(None))) => return,
            Ok(Ok(Err(retry))) => self.retry(&item, &retry),
            Ok(Err(_elapsed)) => self.cut_off(&item),
            Err(panic) => self.contained(&item, &panic),
        };
        self.options.metrics.ended(outcome, started.elapsed());
    }

    /// False when the queue is shut down first.
    async fn wait_until_ready(&self, key: &R::Key) -> bool {
        let Some(ready) = self.options.ready.as_ref().and_then(|ready| ready(key)) else {
            return true;
        };
        tokio::select! {
            biased;
            () = self.queue.closed() => false,
            () = ready => true,
        }
    }

    fn finish(&self, key: &R::Key, next: Next) -> HandlingResult {
        self.queue.clear_record(key);
        self.queue.forget(key);
        match next {
            Next::Done => HandlingResult::Success,
            Next::After(delay) => {
                self.queue.add_after(key.clone(), delay);
                HandlingResult::RequeueAfter
            }
        }
    }

    fn retry(&self, key: &R::Key, retry: &Retry) -> HandlingResult {
        self.queue.clear_record(key);
        let err = retry.error();
        match retry.kind {
            Kind::Throttled => {
                self.queue.put_back(key, retry.at_least);
                debug!(%err, delay = ?retry.at_least, "Throttled, trying again");
                HandlingResult::Throttled
            }
            Kind::Expected => {
                let delay = self.queue.retry(key, retry.at_least);
                debug!(reason = %err, ?delay, "Trying again");
                HandlingResult::Requeue
            }
            Kind::Failure => {
                let delay = self.queue.retry(key, retry.at_least);
                self.log_failure(key, &err.to_string(), delay);
                HandlingResult::Error
            }
        }
    }

    fn cut_off(&self, key: &R::Key) -> HandlingResult {
        let delay = self.queue.retry(key, Duration::ZERO);
        let limit = self.options.limit;
        self.log_failure(
            key,
            &format!("the reconcile did not finish within its limit of {limit:?}"),
            delay,
        );
        HandlingResult::Timeout
    }

    /// With thousands of keys failing for one reason a line now and then tells enough; the metric
    /// counts them all.
    fn log_failure(&self, key: &R::Key, err: &str, delay: Duration) {
        self.queue.note_failure(key, err);
        let failures = self.queue.failures(key);
        match self.log.pass(Instant::now()) {
            Some(0) => warn!(err, failures, ?delay, "Cannot reconcile, trying again"),
            Some(suppressed) => {
                warn!(err, failures, ?delay, suppressed, "Cannot reconcile, trying again");
            }
            None => debug!(err, failures, ?delay, "Cannot reconcile, trying again"),
        }
    }

    fn contained(&self, key: &R::Key, panic: &Panic) -> HandlingResult {
        self.queue.note_failure(key, &format!("panic at {}: {}", panic.location, panic.message));
        let away = self.queue.quarantine(key);
        let verdict = self.options.panics.record(format!("{}/{key}", self.queue.name()), panic);
        if let Some(suppressed) = verdict.show {
            error!(
                location = panic.location,
                panic = panic.message,
                backtrace = panic.backtrace,
                suppressed,
                quarantine = ?away,
                "Panic in a worker"
            );
        }
        if verdict.exceeded {
            self.give_up(&panic.location);
        }
        HandlingResult::Panic
    }

    fn give_up(&self, location: &str) {
        let exceeded =
            TooManyPanics { queue: self.queue.name().to_owned(), location: location.to_owned() };
        // A later one adds nothing.
        drop(self.exceeded.set(exceeded));
        self.queue.shut_down();
    }
}

#[cfg(test)]
mod tests;
