//! [`WorkQueue`]: the schedule and the failure counts under their locks, and who is woken when.
//! Producers call `add`; the worker loop calls `next`.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use resilience::Backoff;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::metrics::{Counters, Probe, QueueMetrics, Sample};
use crate::schedule::{Failures, Schedule};
use crate::state::{Added, Key, Taken};

/// A queue of keys; clones share it. See the crate for the contract.
pub struct WorkQueue<K: Key> {
    inner: Arc<Inner<K>>,
}

impl<K: Key> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

struct Inner<K> {
    name: Box<str>,
    counters: Counters,
    schedule: Mutex<Schedule<K>>,
    failures: Mutex<Failures<K>>,
    /// When a handling was last cut off.
    cut: Mutex<Option<Instant>>,
    last_failure: Mutex<Option<LastFailure>>,
    /// Wakes one worker per ready key, all of them at shutdown.
    ready: Notify,
    /// Wakes the timer task: an earlier deadline, shutdown, or the queue is gone. Shared with
    /// that task, which holds nothing else of the queue while it sleeps.
    timer: Arc<Notify>,
    timer_runs: AtomicBool,
    closed: CancellationToken,
}

impl<K: Key> WorkQueue<K> {
    /// An empty queue. `name` is the label of its metrics and logs.
    pub fn new(name: &str, backoff: Backoff, metrics: &QueueMetrics) -> Self {
        let inner = Arc::new(Inner {
            name: name.into(),
            counters: metrics.of_queue(name),
            schedule: Mutex::new(Schedule::new()),
            failures: Mutex::new(Failures::new(backoff)),
            cut: Mutex::default(),
            last_failure: Mutex::default(),
            ready: Notify::new(),
            timer: Arc::default(),
            timer_runs: AtomicBool::new(false),
            closed: CancellationToken::new(),
        });
        let probe: Weak<Inner<K>> = Arc::downgrade(&inner);
        metrics.watch(probe);
        Self { inner }
    }

    /// The name given to [`WorkQueue::new`].
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Makes the key due now. Does nothing when it waits already or the queue is shut down.
    /// Never blocks, so an informer handler may call it.
    pub fn add(&self, key: K) {
        let added = self.inner.schedule.lock().add(key, Instant::now());
        self.inner.announce(&added);
    }

    /// Makes the key come back in `delay`, or sooner if that was asked for before. A key that is
    /// added meanwhile is handled then, and once more at the end of the delay.
    pub fn add_after(&self, key: K, delay: Duration) {
        let mut schedule = self.inner.schedule.lock();
        let sooner = schedule.add_later(key, delay, Instant::now());
        self.inner.put_back(&schedule, sooner);
    }

    /// Makes a key in hand come back in `delay`, as old as it was, without counting a failure.
    pub(crate) fn put_back(&self, key: &K, delay: Duration) {
        let mut schedule = self.inner.schedule.lock();
        let sooner = schedule.put_back(key, delay, Instant::now());
        self.inner.put_back(&schedule, sooner);
    }

    /// Keeps a key in hand away after a panic; returns for how long.
    pub(crate) fn quarantine(&self, key: &K) -> Duration {
        let now = Instant::now();
        let mut schedule = self.inner.schedule.lock();
        let (until, sooner) = schedule.quarantine(key, now);
        self.inner.put_back(&schedule, sooner);
        until.duration_since(now)
    }

    /// Counts a failure of the key and makes it due after the backoff for that many failures,
    /// but not before `at_least` has passed. Returns the wait, for the log.
    pub fn retry(&self, key: &K, at_least: Duration) -> Duration {
        let delay = self.inner.failures.lock().count(key).max(at_least);
        self.add_after(key.clone(), delay);
        delay
    }

    /// Ends a row of failures: the next one waits the shortest time again.
    pub fn forget(&self, key: &K) {
        self.inner.failures.lock().forget(key);
    }

    /// Ends the row of panics of the key, which was handled without one.
    pub(crate) fn clear_record(&self, key: &K) {
        self.inner.schedule.lock().clear_record(key);
    }

    /// Failures of the key in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.inner.failures.lock().of(key)
    }

    /// How long the key longest in hand has been worked on; zero when none is in hand.
    pub fn longest_running(&self) -> Duration {
        self.inner.sample().longest
    }

    /// Notes that a handling was cut off, by its limit or by a panic: what it had sent may still be
    /// carried out.
    pub(crate) fn note_cut(&self) {
        *self.inner.cut.lock() = Some(Instant::now());
    }

    /// When a handling was last cut off.
    pub fn last_cut(&self) -> Option<Instant> {
        *self.inner.cut.lock()
    }

    /// Notes a failure, for [`WorkQueue::last_failure`].
    pub(crate) fn note_failure(&self, key: &K, error: &str) {
        let (key, error) = (key.to_string(), error.to_owned());
        *self.inner.last_failure.lock() = Some(LastFailure { key, error, at: Instant::now() });
    }

    /// The latest failure of any key.
    pub fn last_failure(&self) -> Option<LastFailure> {
        self.inner.last_failure.lock().clone()
    }

    /// Keys due and not taken yet; those that wait for a time are not counted.
    pub fn len(&self) -> usize {
        self.inner.schedule.lock().len()
    }

    /// True when no key is due.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: what waits is dropped, what comes is ignored, and [`WorkQueue::next`]
    /// returns `None` from now on. Keys in hand are not touched.
    pub fn shut_down(&self) {
        self.inner.schedule.lock().close();
        self.inner.closed.cancel();
        self.inner.ready.notify_waiters();
        self.inner.timer.notify_one();
    }

    /// Waits until the queue is shut down.
    pub async fn closed(&self) {
        self.inner.closed.cancelled().await;
    }

    /// Waits for a key and takes it; `None` once the queue is shut down. May be dropped while
    /// waiting without losing a key.
    pub async fn next(&self) -> Option<Item<K>> {
        self.start_timer();
        // A full queue and a handler that never waits would otherwise keep a runtime thread for
        // themselves, the lease's renewals waiting behind.
        tokio::task::consume_budget().await;
        loop {
            // Made before the look at the queue, so that a shutdown in between still wakes it.
            let ready = self.inner.ready.notified();
            let taken = {
                let mut schedule = self.inner.schedule.lock();
                if schedule.is_closed() {
                    return None;
                }
                schedule.take(Instant::now())
            };
            match taken {
                Taken::Key { key, waited, more } => {
                    if more {
                        // Two adds in a row may have left one wake-up only.
                        self.inner.ready.notify_one();
                    }
                    self.inner.counters.queue_duration.observe(waited.as_secs_f64());
                    return Some(Item { queue: Arc::clone(&self.inner), key });
                }
                Taken::Nothing => ready.await,
            }
        }
    }

    /// Started by the first `next`, which is sure to run inside a runtime; `new` is not.
    fn start_timer(&self) {
        if !self.inner.timer_runs.swap(true, Ordering::Relaxed) {
            let timer = Arc::clone(&self.inner.timer);
            tokio::spawn(resilience::task(make_due(Arc::downgrade(&self.inner), timer)));
        }
    }
}

impl<K: Key> Inner<K> {
    fn announce(&self, added: &Added) {
        match added {
            Added::Ready => {
                self.counters.adds.inc();
                self.ready.notify_one();
            }
            Added::AfterCurrent => self.counters.adds.inc(),
            Added::Known => {}
        }
    }

    /// A key was put back: counts it, and wakes the timer when that is due before all others.
    fn put_back(&self, schedule: &Schedule<K>, sooner: bool) {
        if !schedule.is_closed() {
            self.counters.retries.inc();
        }
        if sooner {
            self.timer.notify_one();
        }
    }

    /// A worker is done with a key.
    fn done(&self, key: &K) {
        let (worked, again) = self.schedule.lock().done(key, Instant::now());
        self.counters.work_duration.observe(worked.as_secs_f64());
        if again {
            self.ready.notify_one();
        }
    }

    /// Adds every key whose time has come; returns when to look again. Err ends the timer.
    fn make_due(&self) -> Result<Option<Instant>, ()> {
        let mut schedule = self.schedule.lock();
        if schedule.is_closed() {
            return Err(());
        }
        schedule.release(Instant::now(), |added| self.announce(added));
        Ok(schedule.next_return())
    }
}

/// The one task per queue that turns delays into adds. Ends with the queue.
async fn make_due<K: Key>(queue: Weak<Inner<K>>, changed: Arc<Notify>) {
    loop {
        let next = queue.upgrade().map(|inner| inner.make_due());
        match next {
            None | Some(Err(())) => return,
            Some(Ok(None)) => changed.notified().await,
            Some(Ok(Some(at))) => tokio::select! {
                biased;
                () = changed.notified() => {}
                () = tokio::time::sleep_until(at) => {}
            },
        }
    }
}

/// The latest failure of any key of a queue. A later success of the key does not take it away.
#[derive(Clone, Debug)]
pub struct LastFailure {
    /// The key.
    pub key: String,
    /// The error as in the log.
    pub error: String,
    /// When it was.
    pub at: Instant,
}

/// A key in hand. While it lives no other worker gets this key; dropping it, also by a panic,
/// says that the work is done.
#[must_use = "dropping the item says that the work is done"]
pub struct Item<K: Key> {
    queue: Arc<Inner<K>>,
    key: K,
}

impl<K: Key> Deref for Item<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        self.queue.done(&self.key);
    }
}

impl<K> Drop for Inner<K> {
    fn drop(&mut self) {
        self.timer.notify_one();
    }
}

impl<K: Key> Probe for Inner<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn sample(&self) -> Sample {
        let now = Instant::now();
        let schedule = self.schedule.lock();
        let (mut unfinished, mut longest) = (Duration::ZERO, Duration::ZERO);
        for age in schedule.running(now) {
            unfinished += age;
            longest = longest.max(age);
        }
        let (depth, quarantined) = (schedule.len(), schedule.quarantined());
        Sample { depth, unfinished, longest, quarantined }
    }
}

#[cfg(test)]
mod tests;
