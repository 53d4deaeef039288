//! [`Throttle`]: the client-side rate limit, one token bucket per controller and purpose. The
//! oldest work is served first (`rule:the-oldest-goes-first`). The gate layer of `call` waits here.
//!
//! - A waiter that gives up delays no other one, and spends no token unless it was just handed to
//!   it.
//! - A pause stops the whole bucket, including the callers already in the queue.
//! - Time is tokio's, so a paused test sees what production does.

pub(crate) mod signals;
mod wait_queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use resilience::{Rate, TokenBucket};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::throttle::signals::{BucketMetrics, Cost, Refusals};
use crate::throttle::wait_queue::WaitQueue;

pub use signals::ThrottleMetrics;

/// The longest time in which a whole bucket may refill: 290 years.
const LONGEST_REFILL: Duration = Duration::from_secs(290 * 365 * 86_400);
/// tokio sleeps at least this long, so a shorter wait was for the queue and not for a token.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// Numbers that make no bucket.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThrottleError {
    /// Stock reads a QPS of 0 as "5"; here it is a mistake.
    #[error(
        "cannot limit client {client:?} to {qps} queries per second: use a number above 0, or -1 \
         for no limit"
    )]
    Qps {
        /// Name of the bucket.
        client: String,
        /// The value given.
        qps: f64,
    },
    /// A bucket that holds nothing lets nothing pass.
    #[error(
        "cannot limit client {client:?} with a burst of {burst} at {qps} queries per second: the \
         burst must be at least 1 and its refill must end within 290 years"
    )]
    Burst {
        /// Name of the bucket.
        client: String,
        /// The queries per second given with it.
        qps: f64,
        /// The value given.
        burst: u32,
    },
}

/// A bucket; clones share it.
#[derive(Clone)]
pub struct Throttle(Arc<Bucket>);

struct Bucket {
    name: String,
    limit: Option<Limit>,
    waiting: Arc<WaitQueue>,
    in_line: AtomicUsize,
    refusals: Mutex<Refusals>,
    cost: Cost,
    /// The last one, also when it is over.
    pause: Mutex<Option<Pause>>,
    metrics: Option<BucketMetrics>,
}

struct Limit {
    qps: f64,
    tokens: Arc<Mutex<TokenBucket>>,
}

#[derive(Clone, Debug)]
struct Pause {
    until: Instant,
    flow_schema: Arc<str>,
}

/// The cost of one call to [`Throttle::acquire`].
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// Time from asking to the token.
    pub(crate) time: Duration,
    /// Callers in the queue when this one came, itself included.
    pub(crate) queue: usize,
    /// The flow schema whose 429 stopped the bucket, when that was why.
    pub(crate) stopped_by: Option<Arc<str>>,
}

impl Throttle {
    /// A bucket of `burst` tokens that regains `qps` of them per second; `None` for a negative
    /// `qps`, which is no limit. `name` is the `client` label of its metrics.
    pub fn new(
        name: &str,
        qps: f64,
        burst: u32,
        metrics: &ThrottleMetrics,
    ) -> Result<Option<Self>, ThrottleError> {
        if qps < 0.0 {
            return Ok(None);
        }
        let limit = Limit::new(name, qps, burst)?;
        let metrics = metrics.follow(name, &limit.tokens);
        Ok(Some(Self(Arc::new(Bucket::new(name, Some(limit), Some(metrics))))))
    }

    /// A throttle without a limit; only 429s of the server stop it.
    pub(crate) fn unlimited(name: &str) -> Self {
        Self(Arc::new(Bucket::new(name, None, None)))
    }

    /// Waits for its turn and takes a token. Work that began at `since` goes before younger work.
    /// Giving up the future takes none.
    pub(crate) async fn acquire(&self, since: Instant) -> Wait {
        self.0.acquire(since).await
    }

    /// Notes that a request is sent; returns its number.
    pub(crate) fn note_sent(&self) -> u64 {
        self.0.refusals.lock().sent()
    }

    /// Notes that the server refused the request of this number by 429; true when it refuses most.
    pub(crate) fn note_refused(&self, number: u64) -> bool {
        self.0.refusals.lock().refused(number)
    }

    /// Stops the bucket for `length` from now, unless it is already stopped for longer.
    pub(crate) fn pause(&self, length: Duration, flow_schema: &str) {
        let until = Instant::now() + length;
        let mut pause = self.0.pause.lock();
        if pause.as_ref().is_none_or(|p| p.until < until) {
            *pause = Some(Pause { until, flow_schema: flow_schema.into() });
        }
    }

    /// How long it is still stopped, and by whose 429.
    pub(crate) fn paused(&self) -> Option<(Duration, Arc<str>)> {
        let pause = self.0.pause_now()?;
        Some((pause.until.saturating_duration_since(Instant::now()), pause.flow_schema))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    #[cfg(test)]
    pub(crate) fn in_line(&self) -> usize {
        self.0.in_line.load(Ordering::Relaxed)
    }

    /// Queries per second, `None` if unlimited.
    pub(crate) fn qps(&self) -> Option<f64> {
        self.0.limit.as_ref().map(|limit| limit.qps)
    }
}

impl std::fmt::Debug for Throttle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Throttle").field("name", &self.0.name).field("qps", &self.qps()).finish()
    }
}

impl Bucket {
    fn new(name: &str, limit: Option<Limit>, metrics: Option<BucketMetrics>) -> Self {
        Self {
            name: name.to_owned(),
            limit,
            waiting: Arc::default(),
            in_line: AtomicUsize::new(0),
            refusals: Mutex::default(),
            cost: Cost::new(),
            pause: Mutex::new(None),
            metrics,
        }
    }

    async fn acquire(&self, since: Instant) -> Wait {
        let started = Instant::now();
        let place = QueueSlot::take(&self.in_line);
        let stopped = self.pause_now();
        self.waiting.pass(since, || self.take()).await;
        let time = started.elapsed();
        // Whoever waited while it was stopped waited for that, wherever in the queue.
        let stopped = stopped.or_else(|| self.last_pause().filter(|pause| pause.until > started));
        let stopped_by = stopped.map(|pause| pause.flow_schema);
        if let Some(metrics) = &self.metrics {
            metrics.waited(time, time >= TIMER_RESOLUTION);
        }
        // The server's own stops are no cost of the limit.
        if let (Some(limit), None) = (&self.limit, &stopped_by) {
            self.cost.waited(&self.name, limit.qps, started, started + time);
        }
        Wait { time, queue: place.position, stopped_by }
    }

    /// Takes a token, or returns the wait after which there may be one.
    fn take(&self) -> Result<(), Sleep> {
        if let Some(pause) = self.pause_now() {
            return Err(sleep_until(pause.until));
        }
        self.limit.as_ref().map_or(Ok(()), Limit::take).map_err(sleep)
    }

    fn last_pause(&self) -> Option<Pause> {
        self.pause.lock().clone()
    }

    fn pause_now(&self) -> Option<Pause> {
        self.last_pause().filter(|pause| pause.until > Instant::now())
    }
}

impl Limit {
    fn new(client: &str, qps: f64, burst: u32) -> Result<Self, ThrottleError> {
        let client = client.to_owned();
        let Ok(period) = Duration::try_from_secs_f64(1.0 / qps) else {
            return Err(ThrottleError::Qps { client, qps });
        };
        let refill = period.as_secs_f64() * f64::from(burst);
        if burst == 0 || refill > LONGEST_REFILL.as_secs_f64() {
            return Err(ThrottleError::Burst { client, qps, burst });
        }
        let bucket = TokenBucket::new(Rate { per_second: qps, burst }, Instant::now());
        Ok(Self { qps, tokens: Arc::new(Mutex::new(bucket)) })
    }

    /// Takes a token, or returns the time until there is one.
    fn take(&self) -> Result<(), Duration> {
        self.tokens.lock().take(Instant::now())
    }
}

/// A caller's place in the queue, left when it is dropped.
struct QueueSlot<'a> {
    queue: &'a AtomicUsize,
    position: usize,
}

impl<'a> QueueSlot<'a> {
    fn take(queue: &'a AtomicUsize) -> Self {
        Self { queue, position: queue.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.queue.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
