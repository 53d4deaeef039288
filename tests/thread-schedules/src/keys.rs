//! Producers and workers of a work queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use prometheus::Registry;
use resilience::{Backoff, Jitter};
use shuttle::future::block_on;
use shuttle::sync::{Barrier, Condvar, Mutex};
use shuttle::thread::{JoinHandle, spawn, yield_now};

use crate::metrics::QueueMetrics;
use crate::queue::WorkQueue;

const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(2), Jitter::None);

#[derive(Default)]
struct Key {
    /// Number of times that it was added.
    added: AtomicU64,
    in_hand: AtomicBool,
}

struct World {
    queue: WorkQueue<usize>,
    keys: [Key; 2],
    /// For each key how often it had been added when it was last taken.
    handled: Mutex<[u64; 2]>,
    progress: Condvar,
    /// Where the work on a key waits for work on another one.
    both: Option<Barrier>,
}

impl World {
    fn new(both: Option<Barrier>) -> Arc<Self> {
        let metrics = QueueMetrics::new(&Registry::new()).unwrap();
        let queue = WorkQueue::new("test", BACKOFF, &metrics);
        let (keys, handled) = (Default::default(), Mutex::default());
        Arc::new(Self { queue, keys, handled, progress: Condvar::new(), both })
    }

    fn add(&self, key: usize) {
        self.keys[key].added.fetch_add(1, Ordering::Relaxed);
        self.queue.add(key);
    }

    async fn work(&self) {
        while let Some(item) = self.queue.next().await {
            let key = &self.keys[*item];
            assert!(!key.in_hand.swap(true, Ordering::Relaxed), "key {} is in two hands", *item);
            let added = key.added.load(Ordering::Relaxed);
            match &self.both {
                Some(both) => drop(both.wait()),
                None => yield_now(),
            }
            self.handled.lock().unwrap()[*item] = added;
            self.progress.notify_one();
            key.in_hand.store(false, Ordering::Relaxed);
        }
    }

    /// Waits until each key has been handled after it was last added; shuttle finds when that never happens.
    fn wait_until_handled(&self) {
        let handled = self.handled.lock().unwrap();
        let is_left = |handled: &mut [u64; 2]| {
            let mut pairs = self.keys.iter().zip(handled);
            pairs.any(|(key, handled)| key.added.load(Ordering::Relaxed) != *handled)
        };
        drop(self.progress.wait_while(handled, is_left).unwrap());
    }
}

/// Runs with two workers, within a runtime that the queue's timer needs and that does nothing.
fn with_workers(both: Option<Barrier>, run: impl FnOnce(&Arc<World>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let world = World::new(both);
    let workers = [(); 2].map(|()| {
        let world = Arc::clone(&world);
        spawn(move || block_on(world.work()))
    });
    run(&world);
    world.queue.shut_down();
    for worker in workers {
        worker.join().unwrap();
    }
}

fn producer(world: &Arc<World>, keys: &'static [usize]) -> JoinHandle<()> {
    let world = Arc::clone(world);
    spawn(move || keys.iter().for_each(|key| world.add(*key)))
}

/// Each key is handled after it was added last, also when it was in hand, and never by two workers at once.
pub fn no_wake_up_of_a_worker_thread_is_lost() {
    crate::run("C10", "work queue: 2 keys, 2 workers, 2 producers", || {
        with_workers(None, |world| {
            let producers = [producer(world, &[0, 1]), producer(world, &[1])];
            for producer in producers {
                producer.join().unwrap();
            }
            world.wait_until_handled();
        });
    });
}

/// No worker sleeps while a key is due and another worker works for long.
pub fn two_keys_reach_two_worker_threads_at_once() {
    crate::run(
        "C10",
        "work queue: 2 keys, 2 workers, 2 producers, work that waits for both",
        || {
            with_workers(Some(Barrier::new(2)), |world| {
                let producers = [producer(world, &[0]), producer(world, &[1])];
                for producer in producers {
                    producer.join().unwrap();
                }
                world.wait_until_handled();
            });
        },
    );
}

/// All workers end, whatever they do when the queue is shut down.
pub fn a_stop_at_any_moment_ends_all_worker_threads() {
    crate::run("C10", "work queue: 2 keys, 2 workers, stop", || {
        with_workers(None, |world| drop(producer(world, &[0, 1])));
    });
}
