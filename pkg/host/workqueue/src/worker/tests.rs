//! The worker loop: what becomes of a key by what its handler returned, of one that takes too long,
//! and of a panic. Time is paused: it moves only when all wait.

use std::collections::HashSet;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use prometheus::{IntCounter, Registry, TextEncoder};
use tokio::sync::{Notify, Semaphore};

use super::*;
use crate::{Backoff, Jitter, QueueMetrics, ReconcileMetrics};

const LIMIT: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Queue, metrics and panics of one controller.
struct Scene {
    queue: WorkQueue<u32>,
    registry: Registry,
    metrics: ControllerMetrics,
    counter: IntCounter,
    panics: PanicLimit,
}

impl Scene {
    fn new(first: Duration) -> Self {
        let registry = Registry::new();
        let backoff = Backoff::doubling(first, secs(60), Jitter::None);
        let queue = WorkQueue::new("test", backoff, &QueueMetrics::new(&registry).unwrap());
        let metrics = ReconcileMetrics::new(&registry).unwrap().of_controller("tester");
        let counter = IntCounter::new("panics", "panics").unwrap();
        let panics = PanicLimit::new(counter.clone());
        Self { queue, registry, metrics, counter, panics }
    }

    fn options(&self, workers: usize) -> WorkerOptions<u32> {
        let (metrics, panics) = (self.metrics.clone(), self.panics.clone());
        WorkerOptions { workers, limit: LIMIT, ready: None, metrics, panics }
    }

    async fn run_for<R: Reconcile<Key = u32>>(
        &self,
        reconcile: &Arc<R>,
        time: Duration,
    ) -> Result<(), TooManyPanics> {
        self.run_with(reconcile, self.options(2), time).await
    }

    async fn run_with<R: Reconcile<Key = u32>>(
        &self,
        reconcile: &Arc<R>,
        options: WorkerOptions<u32>,
        time: Duration,
    ) -> Result<(), TooManyPanics> {
        let stop = self.queue.clone();
        let shut_down = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            stop.shut_down();
        });
        let ended = run_workers(self.queue.clone(), Arc::clone(reconcile), options).await;
        shut_down.abort();
        ended
    }

    fn has_metric(&self, line: &str) -> bool {
        let text = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap();
        text.lines().any(|found| found == line)
    }

    fn results(&self, result: &str) -> String {
        let text = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap();
        let name = format!("icm_reconcile_total{{controller=\"tester\",result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or("absent").to_owned()
    }
}

type Answer = Result<Next, Retry>;

/// A handler made of a function from (key, how often it was called before) to what comes next.
struct Script<F> {
    answer: F,
    calls: Mutex<Vec<(u32, Duration)>>,
    start: Instant,
}

impl<F: Fn(u32, usize) -> Answer + Send + Sync + 'static> Script<F> {
    fn new(answer: F) -> Arc<Self> {
        Arc::new(Self { answer, calls: Mutex::default(), start: Instant::now() })
    }

    fn seconds(&self, key: u32) -> Vec<u64> {
        let calls = self.calls.lock();
        calls.iter().filter(|(called, _)| *called == key).map(|(_, at)| at.as_secs()).collect()
    }
}

impl<F: Fn(u32, usize) -> Answer + Send + Sync + 'static> Reconcile for Script<F> {
    type Key = u32;

    async fn reconcile(&self, key: &u32) -> Answer {
        let before = self.seconds(*key).len();
        self.calls.lock().push((*key, self.start.elapsed()));
        tokio::task::yield_now().await;
        (self.answer)(*key, before)
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_comes_back_as_its_handler_asked() {
    let scene = Scene::new(secs(1));
    let script = Script::new(|key, before| match (key, before) {
        (1, _) | (_, 3..) => Ok(Next::Done),
        (2, _) => Ok(Next::After(secs(10))),
        (3, 1) => Err(Retry::new("no").at_least(secs(20))),
        (4, _) => Err(Retry::expected("not yet")),
        (5, 2) => Err(Retry::new("no")),
        (5, _) => Err(Retry::throttled("429", Some(secs(5)))),
        _ => Err(std::io::Error::other("no").into()),
    });
    (1..=5).for_each(|key| scene.queue.add(key));
    assert_eq!(scene.run_for(&script, HOUR).await, Ok(()));
    assert_eq!(script.seconds(1), [0]);
    assert_eq!(script.seconds(2), [0, 10, 20, 30]);
    assert_eq!(script.seconds(3), [0, 1, 21, 25]);
    assert_eq!(script.seconds(4), [0, 1, 3, 7]);
    assert_eq!(script.seconds(5), [0, 5, 10, 11], "being throttled is no failure");
    assert_eq!(scene.queue.failures(&3), 0, "success ends the row of failures");
    for (result, count) in [
        ("success", "5"),
        ("requeue_after", "3"),
        ("requeue", "3"),
        ("throttled", "2"),
        ("error", "4"),
        ("timeout", "0"),
        ("panic", "0"),
    ] {
        assert_eq!(scene.results(result), count, "{result}");
    }
    assert!(scene.has_metric("icm_reconcile_duration_seconds_count{controller=\"tester\"} 17"));
}

/// Throttled at the first call of each key below 10; key 10 takes a second.
#[derive(Default)]
struct Throttled(Mutex<Vec<u32>>);

impl Reconcile for Throttled {
    type Key = u32;

    async fn reconcile(&self, key: &u32) -> Answer {
        let first = !self.0.lock().contains(key);
        self.0.lock().push(*key);
        match key {
            10 => tokio::time::sleep(secs(1)).await,
            0..10 if first => {
                return Err(Retry::throttled("429", Some(Duration::from_millis(200))));
            }
            _ => {}
        }
        Ok(Next::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_keys_come_back_oldest_first_and_before_younger_ones() {
    let scene = Scene::new(secs(1));
    let (queue, throttled) = (scene.queue.clone(), Arc::new(Throttled::default()));
    let adds = async move {
        for key in [3, 1, 2] {
            queue.add(key);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // While it holds the only worker the pauses of the others end, and younger keys come.
        queue.add(10);
        tokio::time::sleep(Duration::from_millis(10)).await;
        queue.add(11);
        queue.add(12);
    };
    let workers = scene.run_with(&throttled, scene.options(1), secs(10));
    let (ended, ()) = tokio::join!(workers, adds);
    assert_eq!(ended, Ok(()));
    assert_eq!(*throttled.0.lock(), [3, 1, 2, 10, 3, 1, 2, 11, 12]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_its_key_half_a_minute_and_no_worker() {
    // node-ipam's own backoff: five panics would come within 2 s if it were used.
    let scene = Scene::new(Duration::from_millis(50));
    let script = Script::new(|key, before| {
        assert!(key != 7 || before >= 6, "key {key} is not ready");
        if key == 8 { Ok(Next::After(secs(1))) } else { Ok(Next::Done) }
    });
    scene.queue.add(7);
    scene.queue.add(8);
    assert_eq!(scene.run_for(&script, HOUR).await, Ok(()));
    assert_eq!(scene.counter.get(), 6);
    assert_eq!(script.seconds(7), [0, 30, 90, 210, 450, 750, 1050], "30 s, doubling to 5 min");
    assert_eq!(script.seconds(8).len(), 3600, "its neighbour notices nothing");
    assert!(scene.has_metric("icm_workqueue_quarantined_keys{name=\"test\"} 0"));
}

#[tokio::test(start_paused = true)]
async fn a_key_in_quarantine_is_not_handled_however_often_it_is_added_and_not_forgotten() {
    let scene = Scene::new(secs(1));
    let script = Script::new(|_, before| {
        assert!(before > 0, "the first time");
        Ok(Next::Done)
    });
    let queue = scene.queue.clone();
    queue.add(1);
    let events = async move {
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            queue.add(1);
            queue.add_after(1, Duration::from_millis(50));
        }
    };
    let (ended, ()) = tokio::join!(scene.run_for(&script, secs(100)), events);
    assert_eq!(ended, Ok(()));
    assert_eq!(script.seconds(1), [0, 30]);
    assert!(scene.queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_its_handler_panics_waits_out_its_quarantine() {
    let scene = Scene::new(secs(1));
    let queue = scene.queue.clone();
    let script = Script::new(move |_, before| {
        queue.add(1);
        assert!(before > 0, "the first time");
        queue.shut_down();
        Ok(Next::Done)
    });
    scene.queue.add(1);
    assert_eq!(scene.run_for(&script, HOUR).await, Ok(()));
    assert_eq!(script.seconds(1), [0, 30]);
}

#[tokio::test(start_paused = true)]
async fn panics_of_five_different_keys_end_the_workers_and_a_fresh_start_bears_them() {
    let scene = Scene::new(secs(1));
    let script = Script::new(|key, _| {
        assert!(key >= 14, "cannot bear {key}");
        Ok(Next::Done)
    });
    let fill = |queue: &WorkQueue<u32>| (0..20).for_each(|key| queue.add(key));
    fill(&scene.queue);
    let error = scene.run_for(&script, HOUR).await.unwrap_err();
    assert_eq!(error.queue, "test");
    assert!(error.location.contains("worker/tests.rs:"), "{error}");
    assert!(scene.queue.next().await.is_none(), "the queue must be shut down");

    // The next run has a queue of its own, but remembers the five.
    let queue_metrics = QueueMetrics::new(&Registry::new()).unwrap();
    let backoff = Backoff::doubling(secs(1), secs(60), Jitter::None);
    let again = Scene { queue: WorkQueue::new("test", backoff, &queue_metrics), ..scene };
    fill(&again.queue);
    assert_eq!(again.run_for(&script, HOUR).await, Ok(()));
    let served: HashSet<u32> =
        script.calls.lock().iter().map(|(key, _)| *key).filter(|key| *key >= 14).collect();
    assert_eq!(served.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_await_is_contained_too() {
    struct Eager;
    impl Reconcile for Eager {
        type Key = u32;

        #[allow(clippy::manual_async_fn, reason = "the point is what runs before the future")]
        fn reconcile(&self, _: &u32) -> impl Future<Output = Answer> + Send {
            assert!(!std::hint::black_box(true), "while the future is made");
            async { Ok(Next::Done) }
        }
    }
    let scene = Scene::new(secs(1));
    scene.queue.add(1);
    assert_eq!(scene.run_for(&Arc::new(Eager), secs(1)).await, Ok(()));
    assert_eq!((scene.counter.get(), scene.results("panic").as_str()), (1, "1"));
}

/// Hangs at its first call of key 1.
struct Hangs {
    calls: AtomicUsize,
}

impl Reconcile for Hangs {
    type Key = u32;

    async fn reconcile(&self, key: &u32) -> Answer {
        if *key == 1 && self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            pending::<()>().await;
        }
        Ok(Next::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_handling_that_does_not_end_is_cut_off_at_its_limit_and_tried_again() {
    let scene = Scene::new(secs(1));
    let hangs = Arc::new(Hangs { calls: AtomicUsize::new(0) });
    scene.queue.add(1);
    scene.queue.add(2);
    let start = Instant::now();
    assert_eq!(scene.queue.last_cut(), None);
    assert_eq!(scene.run_with(&hangs, scene.options(1), secs(600)).await, Ok(()));
    assert_eq!(hangs.calls.load(Ordering::SeqCst), 2);
    assert_eq!([scene.results("timeout"), scene.results("success")], ["1", "2"]);
    assert_eq!(scene.queue.last_cut(), Some(start + LIMIT));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_handled_only_when_it_is_ready_and_its_wait_counts_towards_its_limit() {
    let scene = Scene::new(secs(1));
    let shown = Arc::new(Notify::new());
    let waits = Arc::clone(&shown);
    let ready: Ready<u32> = Box::new(move |key| {
        let waits = Arc::clone(&waits);
        (*key != 1).then(|| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move { waits.notified().await })
        })
    });
    let script = Script::new(|_, _| Ok(Next::Done));
    scene.queue.add(1);
    scene.queue.add(2);
    let options = WorkerOptions { ready: Some(ready), ..scene.options(2) };
    let later = async {
        tokio::time::sleep(LIMIT + secs(5)).await;
        shown.notify_one();
    };
    let (ended, ()) = tokio::join!(scene.run_with(&script, options, HOUR), later);
    assert_eq!(ended, Ok(()));
    assert_eq!(script.seconds(1), [0]);
    assert_eq!(script.seconds(2), [65], "cut off at 60 s, and waiting again from 61 s");
    assert_eq!(scene.results("timeout"), "1");
    assert_eq!(scene.queue.last_cut(), None, "what was not begun has sent nothing");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_key_to_become_ready() {
    let scene = Scene::new(secs(1));
    let script = Script::new(|_, _| Ok(Next::Done));
    scene.queue.add(1);
    let ready: Ready<u32> = Box::new(|_| Some(Box::pin(pending())));
    let options = WorkerOptions { ready: Some(ready), ..scene.options(1) };
    let start = Instant::now();
    assert_eq!(scene.run_with(&script, options, secs(5)).await, Ok(()));
    assert_eq!(start.elapsed(), secs(5));
    assert!(script.seconds(1).is_empty(), "it was never ready");
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

        async fn reconcile(&self, _: &u32) -> Answer {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await?.forget();
            self.finished.fetch_add(1, Ordering::SeqCst);
            Ok(Next::Done)
        }
    }
    let scene = Scene::new(secs(1));
    (0..10).for_each(|key| scene.queue.add(key));
    let slow = Arc::new(Slow {
        gate: Semaphore::new(0),
        begun: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
    });
    let options = scene.options(3);
    let workers = tokio::spawn(run_workers(scene.queue.clone(), Arc::clone(&slow), options));
    while slow.begun.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    scene.queue.shut_down();
    tokio::time::sleep(secs(50)).await;
    assert!(!workers.is_finished(), "it must wait for the three keys in hand");
    slow.gate.add_permits(10);
    assert_eq!(workers.await.unwrap(), Ok(()));
    assert_eq!(slow.begun.load(Ordering::SeqCst), 3);
    assert_eq!(slow.finished.load(Ordering::SeqCst), 3);
}
