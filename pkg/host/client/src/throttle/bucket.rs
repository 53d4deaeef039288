//! The token bucket of one client: `governor` for the arithmetic, a [`Line`] for the order
//! (`rule:one-bucket-per-controller`). Full at the start, refilled continuously, the oldest work is
//! served first. The gate layer asks it.
//!
//! Guarantees:
//! - a waiter that gives up holds nobody up, and spends no token unless one was just handed to it;
//! - a pause stops the whole bucket, the callers already in line included;
//! - time is tokio's, so a paused test sees exactly what production does.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use crate::throttle::advice::Cost;
use crate::throttle::line::{Head, Line, Turn};
use crate::throttle::metrics::{BucketMetrics, Level, ThrottleMetrics};
use crate::throttle::refusals::Refusals;

type Limiter = RateLimiter<NotKeyed, InMemoryState, TokioClock, StateInformationMiddleware>;

/// tokio sleeps at least this long, so a shorter wait was for the line and not for a token.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// Numbers that make no bucket.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThrottleError {
    /// Stock reads a QPS of 0 as "5"; here it is a mistake.
    #[error(
        "cannot limit client {client:?} to {qps} queries per second: give a number above 0, or -1 \
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
    rate: Option<Rate>,
    line: Arc<Line>,
    in_line: AtomicUsize,
    refusals: Mutex<Refusals>,
    cost: Cost,
    /// The last one, also when it is over.
    pause: Mutex<Option<Pause>>,
    metrics: Option<BucketMetrics>,
}

struct Rate {
    qps: f64,
    burst: u32,
    limiter: Limiter,
    /// Tokens left after the last one was taken, and when.
    level: Mutex<(u32, Instant)>,
}

#[derive(Clone, Debug)]
struct Pause {
    until: Instant,
    flow_schema: Arc<str>,
}

/// What one call to [`Throttle::acquire`] cost.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// Time from asking to the token.
    pub(crate) time: Duration,
    /// Callers in line when this one came, itself included.
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
        let rate = Rate::new(name, qps, burst)?;
        let bucket = Arc::new(Bucket::new(name, Some(rate), Some(metrics.bucket(name))));
        let level: Weak<dyn Level> = Arc::<Bucket>::downgrade(&bucket);
        metrics.follow(&level);
        Ok(Some(Self(bucket)))
    }

    /// No limit of ours; only the server's 429s stop it.
    pub(crate) fn unlimited(name: &str) -> Self {
        Self(Arc::new(Bucket::new(name, None, None)))
    }

    /// Waits for its turn and takes a token. Work that began at `since` goes before younger work.
    /// Giving up the future takes none.
    pub(crate) async fn acquire(&self, since: Instant) -> Wait {
        self.0.acquire(since).await
    }

    /// Notes whether the server refused a request by 429; true when it refuses most of them.
    pub(crate) fn note_answer(&self, refused: bool) -> bool {
        self.0.refusals.lock().note(refused)
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
        self.0.rate.as_ref().map(|r| r.qps)
    }
}

impl std::fmt::Debug for Throttle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Throttle").field("name", &self.0.name).field("qps", &self.qps()).finish()
    }
}

impl Bucket {
    fn new(name: &str, rate: Option<Rate>, metrics: Option<BucketMetrics>) -> Self {
        Self {
            name: name.to_owned(),
            rate,
            line: Arc::default(),
            in_line: AtomicUsize::new(0),
            refusals: Mutex::default(),
            cost: Cost::new(),
            pause: Mutex::new(None),
            metrics,
        }
    }

    async fn acquire(&self, since: Instant) -> Wait {
        let started = Instant::now();
        let place = Place::take(&self.in_line);
        let stopped = self.pause_now();
        self.token(since).await;
        let time = started.elapsed();
        // Whoever waited while it was stopped waited for that, wherever in line.
        let stopped = stopped.or_else(|| self.last_pause().filter(|pause| pause.until > started));
        let stopped_by = stopped.map(|pause| pause.flow_schema);
        if let Some(metrics) = &self.metrics {
            metrics.waited(time, time >= TIMER_RESOLUTION);
        }
        // The server's own stops are no cost of the limit.
        if let (Some(rate), None) = (&self.rate, &stopped_by) {
            self.cost.waited(&self.name, rate.qps, started, started + time);
        }
        Wait { time, queue: place.position, stopped_by }
    }

    async fn token(&self, since: Instant) {
        let mut turn = self.line.turn(since).await;
        loop {
            let Turn::Head(head) = turn else { return };
            if let Some(pause) = self.pause_now() {
                sleep_until(pause.until).await;
            } else if let Err(missing) = self.take() {
                sleep(missing).await;
            } else {
                self.let_others_pass(&head);
                return;
            }
            turn = head.give_way().await;
        }
    }

    /// As many as there are tokens for, at once: those who waited for the end of a pause leave
    /// together, and one 429 among their answers does not stop the others one by one.
    fn let_others_pass(&self, head: &Head) {
        while head.is_followed() && self.pause_now().is_none() && self.take().is_ok() {
            head.let_pass();
        }
    }

    fn take(&self) -> Result<(), Duration> {
        self.rate.as_ref().map_or(Ok(()), Rate::take)
    }

    fn last_pause(&self) -> Option<Pause> {
        self.pause.lock().clone()
    }

    fn pause_now(&self) -> Option<Pause> {
        self.last_pause().filter(|pause| pause.until > Instant::now())
    }
}

impl Level for Bucket {
    fn name(&self) -> &str {
        &self.name
    }

    fn utilization(&self) -> f64 {
        self.rate.as_ref().map_or(0.0, Rate::utilization)
    }
}

impl Rate {
    fn new(client: &str, qps: f64, burst: u32) -> Result<Self, ThrottleError> {
        let client = client.to_owned();
        let period = Duration::try_from_secs_f64(1.0 / qps)
            .map_err(|_| ThrottleError::Qps { client: client.clone(), qps })?
            .max(Duration::from_nanos(1));
        // governor counts the refill of a whole bucket in a u64 of nanoseconds, twice over.
        let refill_fits = period.as_nanos() * u128::from(burst) <= u128::from(u64::MAX / 2);
        let quota = NonZeroU32::new(burst)
            .filter(|_| refill_fits)
            .and_then(|burst| Some(Quota::with_period(period)?.allow_burst(burst)));
        let Some(quota) = quota else { return Err(ThrottleError::Burst { client, qps, burst }) };
        let clock = TokioClock(Instant::now());
        let limiter = RateLimiter::direct_with_clock(quota, clock)
            .with_middleware::<StateInformationMiddleware>();
        Ok(Self { qps, burst, limiter, level: Mutex::new((burst, Instant::now())) })
    }

    /// Takes a token, or says how long it will be before there is one.
    fn take(&self) -> Result<(), Duration> {
        match self.limiter.check() {
            Ok(left) => {
                *self.level.lock() = (left.remaining_burst_capacity(), Instant::now());
                Ok(())
            }
            Err(not_yet) => Err(not_yet.wait_time_from(self.limiter.clock().now())),
        }
    }

    fn utilization(&self) -> f64 {
        let (left, at) = *self.level.lock();
        let burst = f64::from(self.burst);
        let left = f64::from(left) + self.qps * at.elapsed().as_secs_f64();
        1.0 - left.min(burst) / burst
    }
}

/// tokio's clock as time since the bucket was made.
#[derive(Clone, Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A caller's place in line, left when it is dropped.
struct Place<'a> {
    line: &'a AtomicUsize,
    position: usize,
}

impl<'a> Place<'a> {
    fn take(line: &'a AtomicUsize) -> Self {
        Self { line, position: line.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.line.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
