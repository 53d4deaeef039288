//! Callers wait in the queue before a token bucket, and some leave.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread::{JoinHandle, spawn};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::wait_queue::WaitQueue;

#[derive(Default)]
struct Counts {
    tokens: usize,
    /// Callers that are or were in the queue.
    entered: usize,
    /// The callers that got a token.
    passed: Vec<u64>,
}

struct Bucket {
    queue: Arc<WaitQueue>,
    refilled: Notify,
    counts: Mutex<Counts>,
    changed: Condvar,
    start: Instant,
}

impl Bucket {
    fn new() -> Arc<Self> {
        let (queue, counts, changed) = (Arc::default(), Mutex::default(), Condvar::new());
        Arc::new(Self { queue, refilled: Notify::new(), counts, changed, start: Instant::now() })
    }

    fn note(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap());
        self.changed.notify_all();
    }

    /// Shuttle finds when that never happens.
    fn wait_until(&self, is_so: impl Fn(&Counts) -> bool) {
        let counts = self.counts.lock().unwrap();
        drop(self.changed.wait_while(counts, |counts| !is_so(counts)).unwrap());
    }

    fn refill(&self, tokens: usize) {
        self.note(|counts| counts.tokens += tokens);
        self.refilled.notify_one();
    }

    /// Waits for a token, or leaves after so many looks; the greater `number`, the younger is the caller.
    async fn wait(&self, number: u64, patience: Option<usize>) {
        let take = || {
            let mut counts = self.counts.lock().unwrap();
            let left = counts.tokens.checked_sub(1).ok_or_else(|| self.refilled.notified());
            left.map(|left| counts.tokens = left)
        };
        let since = self.start + Duration::from_secs(number);
        let mut pass = pin!(self.queue.pass(since, take));
        let mut looks = 0;
        let has_passed = poll_fn(|context| {
            if pass.as_mut().poll(context).is_ready() {
                return Poll::Ready(true);
            }
            if looks == 0 {
                self.note(|counts| counts.entered += 1);
            }
            looks += 1;
            if patience.is_some() {
                context.waker().wake_by_ref();
            }
            if patience.is_some_and(|most| looks >= most) {
                Poll::Ready(false)
            } else {
                Poll::Pending
            }
        });
        if has_passed.await {
            self.note(|counts| counts.passed.push(number));
        }
    }

    fn caller(self: &Arc<Self>, number: u64, patience: Option<usize>) -> JoinHandle<()> {
        let bucket = Arc::clone(self);
        spawn(move || block_on(bucket.wait(number, patience)))
    }
}

/// Tokens go to the callers that waited longest, in whatever order they came, and when the oldest has left
/// (`rule:the-oldest-goes-first`).
pub fn the_oldest_caller_goes_first() {
    crate::run("C10", "throttle: 4 callers, 1 that leaves, 2 refills", || {
        let bucket = Bucket::new();
        let callers = [3, 1, 4, 2].map(|number| bucket.caller(number, None));
        let oldest = bucket.caller(0, Some(2));
        bucket.wait_until(|counts| counts.entered == 5);
        oldest.join().unwrap();
        for expected in [vec![1, 2], vec![1, 2, 3, 4]] {
            bucket.refill(2);
            bucket.wait_until(|counts| counts.passed.len() == expected.len());
            let mut passed = bucket.counts.lock().unwrap().passed.clone();
            passed.sort_unstable();
            assert_eq!(passed, expected);
        }
        for caller in callers {
            caller.join().unwrap();
        }
    });
}

/// A caller that leaves costs at most the token that it was just handed, and no caller waits for ever.
pub fn a_caller_that_leaves_stops_no_other_caller() {
    crate::run("C10", "throttle: 2 callers, 1 that leaves, 3 refills", || {
        let bucket = Bucket::new();
        let callers = [2, 0, 1].map(|number| bucket.caller(number, (number == 0).then_some(3)));
        for _ in 0..3 {
            bucket.refill(1);
        }
        for caller in callers {
            caller.join().unwrap();
        }
        let counts = bucket.counts.lock().unwrap();
        // When a second token is lost, a caller waits for ever, and its join does not end.
        assert!(counts.tokens + counts.passed.len() <= 3, "a token was given twice");
    });
}
