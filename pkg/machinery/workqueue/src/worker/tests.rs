//! The worker loop: what becomes of a key by what its handler returned, and of a panic.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use prometheus::Registry;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::*;
use crate::{Backoff, Jitter, QueueMetrics};

fn queue() -> WorkQueue<u32> {
    let backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60), Jitter::None);
    WorkQueue::new("test", backoff, &QueueMetrics::new(&Registry::new()).unwrap())
}

fn counter() -> IntCounter {
    IntCounter::new("panics", "panics").unwrap()
}

/// A handler made of a function from (key, how often it was called before) to what comes next.
struct Script<F> {
    answer: F,
    calls: Mutex<Vec<(u32, Duration)>>,
    start: Instant,
}

impl<F: Fn(u32, usize) -> Next + Send + Sync + 'static> Script<F> {
    fn new(answer: F) -> Arc<Self> {
        Arc::new(Self { answer, calls: Mutex::default(), start: Instant::now() })
    }

    fn seconds(&self, key: u32) -> Vec<u64> {
        let calls = self.calls.lock();
        calls.iter().filter(|(called, _)| *called == key).map(|(_, at)| at.as_secs()).collect()
    }
}

impl<F: Fn(u32, usize) -> Next + Send + Sync + 'static> Reconcile for Script<F> {
    type Key = u32;

    async fn reconcile(&self, key: &u32) -> Next {
        let before = self.seconds(*key).len();
        self.calls.lock().push((*key, self.start.elapsed()));
        tokio::task::yield_now().await;
        (self.answer)(*key, before)
    }
}

async fn run_for<R: Reconcile>(
    queue: &WorkQueue<R::Key>,
    reconcile: &Arc<R>,
    time: Duration,
) -> (Result<(), TooManyPanics>, u64) {
    let panics = counter();
    let (stop, ended) = (queue.clone(), Arc::clone(reconcile));
    let shut_down = async move {
        tokio::time::sleep(time).await;
        stop.shut_down();
    };
    let (result, ()) =
        tokio::join!(run_workers(queue.clone(), 2, ended, panics.clone()), shut_down);
    (result, panics.get())
}

#[tokio::test(start_paused = true)]
async fn a_key_comes_back_as_its_handler_asked() {
    let queue = queue();
    let script = Script::new(|key, before| match (key, before) {
        (1, _) | (_, 3..) => Next::Done,
        (2, _) => Next::After(Duration::from_secs(10)),
        (3, 1) => Next::Retry { at_least: Duration::from_secs(20) },
        _ => Next::Retry { at_least: Duration::ZERO },
    });
    for key in [1, 2, 3] {
        queue.add(key);
    }
    let (result, _) = run_for(&queue, &script, Duration::from_secs(3600)).await;
    assert_eq!(result, Ok(()));
    assert_eq!(script.seconds(1), [0]);
    assert_eq!(script.seconds(2), [0, 10, 20, 30]);
    assert_eq!(script.seconds(3), [0, 1, 21, 25]);
    assert_eq!(queue.attempts(&3), 0, "success ends the row of failures");
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_attempt_and_no_worker() {
    let queue = queue();
    let script = Script::new(|key, before| {
        assert!(key != 7 || before >= 4, "key {key} is not ready");
        Next::Done
    });
    queue.add(7);
    queue.add(8);
    let (result, panics) = run_for(&queue, &script, Duration::from_secs(3600)).await;
    assert_eq!(result, Ok(()));
    assert_eq!(panics, 4);
    assert_eq!(script.seconds(7), [0, 1, 3, 7, 15]);
    assert_eq!(script.seconds(8), [0]);
}

#[tokio::test(start_paused = true)]
async fn the_fifth_panic_within_a_minute_ends_the_workers() {
    let queue = queue();
    let script = Script::new(|_, _| panic!("always"));
    queue.add(1);
    let (result, panics) = run_for(&queue, &script, Duration::from_secs(3600)).await;
    let error = result.unwrap_err();
    assert_eq!((panics, error.panics, error.queue.as_str()), (5, 5, "test"));
    assert!(error.location.contains("worker/tests.rs:"), "{error}");
    assert!(queue.next().await.is_none(), "the queue must be shut down");
}

#[tokio::test(start_paused = true)]
async fn panics_spread_over_more_than_a_minute_are_survived() {
    let queue = queue();
    let script = Script::new(|_, before| {
        assert!(before.is_multiple_of(2), "every other time");
        Next::After(Duration::from_secs(20))
    });
    queue.add(1);
    let (result, panics) = run_for(&queue, &script, Duration::from_secs(3600)).await;
    assert_eq!(result, Ok(()));
    assert!(panics > 50, "{panics}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_await_is_contained_too() {
    struct Eager;
    impl Reconcile for Eager {
        type Key = u32;

        #[allow(clippy::manual_async_fn, reason = "the point is what runs before the future")]
        fn reconcile(&self, _: &u32) -> impl Future<Output = Next> + Send {
            assert!(!std::hint::black_box(true), "while the future is made");
            async { Next::Done }
        }
    }
    let queue = queue();
    queue.add(1);
    let (result, panics) = run_for(&queue, &Arc::new(Eager), Duration::from_secs(1)).await;
    assert_eq!((result, panics), (Ok(()), 1));
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_the_work_in_hand_finish() {
    struct Slow {
        gate: Semaphore,
        begun: AtomicUsize,
        finished: AtomicUsize,
    }
    impl Reconcile for Slow {
        type Key = u32;

        async fn reconcile(&self, _: &u32) -> Next {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            self.finished.fetch_add(1, Ordering::SeqCst);
            Next::Done
        }
    }
    let queue = queue();
    for key in 0..10 {
        queue.add(key);
    }
    let slow = Arc::new(Slow {
        gate: Semaphore::new(0),
        begun: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
    });
    let workers = tokio::spawn(run_workers(queue.clone(), 3, Arc::clone(&slow), counter()));
    while slow.begun.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    queue.shut_down();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!workers.is_finished(), "it must wait for the three keys in hand");
    slow.gate.add_permits(10);
    assert_eq!(workers.await.unwrap(), Ok(()));
    assert_eq!(slow.begun.load(Ordering::SeqCst), 3);
    assert_eq!(slow.finished.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn one_place_is_logged_once_a_minute() {
    let limit = PanicLimit::default();
    assert!(limit.record("a.rs:1").show);
    assert!(!limit.record("a.rs:1").show);
    assert!(limit.record("b.rs:1").show);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(limit.record("a.rs:1").show);
}
