//! [`WorkQueue`]: the state, the delays and the failure counts under their locks, and who is
//! woken when. Producers call `add`; the worker loop calls `next`.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use backoff::Backoff;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::delays::Delays;
use crate::item::Item;
use crate::metrics::{Counters, Probe, QueueMetrics, Sample};
use crate::state::{Added, State, Taken};

/// What can be a key: `Arc<str>` or a small enum. Keys are cloned several times per turn.
pub trait Key: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static> Key for K {}

/// A time no process lives to see, for waits that overflow the clock.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

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
    backoff: Backoff,
    counters: Counters,
    queue: Mutex<Queue<K>>,
    failures: Mutex<HashMap<K, u32>>,
    /// Wakes one worker per ready key, all of them at shutdown.
    ready: Notify,
    /// Wakes the timer task: an earlier deadline, shutdown, or the queue is gone. Shared with
    /// that task, which holds nothing else of the queue while it sleeps.
    timer: Arc<Notify>,
}

struct Queue<K> {
    state: State<K>,
    delays: Delays<K>,
    timer_runs: bool,
    closed: bool,
}

impl<K: Key> WorkQueue<K> {
    /// An empty queue. `name` is the label of its metrics and logs.
    pub fn new(name: &str, backoff: Backoff, metrics: &QueueMetrics) -> Self {
        let queue =
            Queue { state: State::new(), delays: Delays::new(), timer_runs: false, closed: false };
        let inner = Arc::new(Inner {
            name: name.into(),
            backoff,
            counters: metrics.of_queue(name),
            queue: Mutex::new(queue),
            failures: Mutex::default(),
            ready: Notify::new(),
            timer: Arc::default(),
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
        let mut queue = self.inner.queue.lock();
        let added = queue.add(key, Instant::now());
        drop(queue);
        self.inner.announce(&added);
    }

    /// Makes the key due in `delay`, or sooner if that was asked for before. A key that is added
    /// meanwhile is handled then, and once more at the end of the delay.
    pub fn add_after(&self, key: K, delay: Duration) {
        let inner = &*self.inner;
        let now = Instant::now();
        let mut queue = inner.queue.lock();
        if queue.closed {
            return;
        }
        inner.counters.retries.inc();
        if delay.is_zero() {
            drop(queue);
            return self.add(key);
        }
        let at = now.checked_add(delay).unwrap_or_else(|| now + NEVER);
        if queue.delays.put(key, at) {
            inner.timer.notify_one();
        }
    }

    /// Counts a failure of the key and makes it due after the backoff for that many failures,
    /// but not before `at_least` has passed. Returns the wait, for the log.
    pub fn retry(&self, key: &K, at_least: Duration) -> Duration {
        let failures = {
            let mut failures = self.inner.failures.lock();
            let count = failures.entry(key.clone()).or_insert(0);
            *count = count.saturating_add(1);
            *count
        };
        let delay = self.inner.backoff.delay(failures - 1).max(at_least);
        self.add_after(key.clone(), delay);
        delay
    }

    /// Ends a row of failures: the next one waits the shortest time again.
    pub fn forget(&self, key: &K) {
        self.inner.failures.lock().remove(key);
    }

    /// Failures of the key in a row.
    #[cfg(test)]
    pub(crate) fn attempts(&self, key: &K) -> u32 {
        self.inner.failures.lock().get(key).copied().unwrap_or(0)
    }

    /// Keys due and not taken yet; those that wait for a time are not counted.
    pub fn len(&self) -> usize {
        self.inner.queue.lock().state.len()
    }

    /// True when no key is due.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: what waits is dropped, what comes is ignored, and [`WorkQueue::next`]
    /// returns `None` from now on. Keys in hand are not touched.
    pub fn shut_down(&self) {
        let mut queue = self.inner.queue.lock();
        queue.closed = true;
        queue.state.clear();
        queue.delays.clear();
        drop(queue);
        self.inner.ready.notify_waiters();
        self.inner.timer.notify_one();
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
                let mut queue = self.inner.queue.lock();
                if queue.closed {
                    return None;
                }
                queue.state.take(Instant::now())
            };
            match taken {
                Taken::Key { key, waited, more } => {
                    if more {
                        // Two adds in a row may have left one wake-up only.
                        self.inner.ready.notify_one();
                    }
                    self.inner.counters.queue_duration.observe(waited.as_secs_f64());
                    return Some(Item::new(self.clone(), key));
                }
                Taken::Nothing => ready.await,
            }
        }
    }

    /// Ends the work on a key; called by its [`Item`] and nobody else.
    pub(crate) fn done(&self, key: &K) {
        let (worked, again) = self.inner.queue.lock().state.done(key, Instant::now());
        self.inner.counters.work_duration.observe(worked.as_secs_f64());
        if again {
            self.inner.ready.notify_one();
        }
    }

    /// Started by the first `next`, which is sure to run inside a runtime; `new` is not.
    fn start_timer(&self) {
        let mut queue = self.inner.queue.lock();
        if !queue.timer_runs {
            queue.timer_runs = true;
            let timer = Arc::clone(&self.inner.timer);
            tokio::spawn(make_due(Arc::downgrade(&self.inner), timer));
        }
    }
}

impl<K: Key> Queue<K> {
    fn add(&mut self, key: K, now: Instant) -> Added {
        if self.closed { Added::Known } else { self.state.add(key, now) }
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

    /// Adds every key whose time has come; returns when to look again. Err ends the timer.
    fn make_due(&self) -> Result<Option<Instant>, ()> {
        let now = Instant::now();
        let mut queue = self.queue.lock();
        if queue.closed {
            return Err(());
        }
        while let Some(key) = queue.delays.pop(now) {
            let added = queue.add(key, now);
            self.announce(&added);
        }
        Ok(queue.delays.next())
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
                () = changed.notified() => {}
                () = tokio::time::sleep_until(at) => {}
            },
        }
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
        let queue = self.queue.lock();
        let (mut unfinished, mut longest) = (Duration::ZERO, Duration::ZERO);
        for age in queue.state.running(now) {
            unfinished += age;
            longest = longest.max(age);
        }
        Sample { depth: queue.state.len(), unfinished, longest }
    }
}

#[cfg(test)]
mod tests;
