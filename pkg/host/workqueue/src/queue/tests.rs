//! The contract of the queue, clause by clause. Time is paused: it moves only when all wait.

mod explored;

use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus::{Registry, TextEncoder};
use resilience::Jitter;
use tokio::time::timeout;

use super::*;

const STEADY: Backoff =
    Backoff::doubling(Duration::from_millis(10), Duration::from_secs(1), Jitter::None);
const A_WHILE: Duration = Duration::from_secs(3600);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new("test", STEADY, &QueueMetrics::new(&Registry::new()).unwrap())
}

/// The next key, which must come within any time somebody would wait for it.
async fn take<K: Key>(queue: &WorkQueue<K>) -> Item<K> {
    timeout(2 * A_WHILE, queue.next()).await.expect("a key must come").expect("the queue must run")
}

/// Nothing is due now or for as long as anybody would wait for it.
async fn stays_empty(queue: &WorkQueue<&'static str>) -> bool {
    timeout(A_WHILE, queue.next()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_key_added_often_is_handed_out_once() {
    let queue = queue();
    for _ in 0..3 {
        queue.add("a");
    }
    assert_eq!(queue.len(), 1);
    drop(take(&queue).await);
    assert!(stays_empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn keys_come_in_the_order_in_which_they_became_due() {
    let queue = queue();
    for key in ["a", "b", "a", "c"] {
        queue.add(key);
    }
    for key in ["a", "b", "c"] {
        assert_eq!(*take(&queue).await, key);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_in_hand_is_not_handed_out_again_until_it_is_done() {
    let queue = queue();
    queue.add("a");
    let first = take(&queue).await;
    queue.add("a");
    assert!(stays_empty(&queue).await);
    drop(first);
    assert_eq!(*take(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changed_while_in_hand_comes_once_more() {
    let queue = queue();
    queue.add("a");
    let first = take(&queue).await;
    queue.add("a");
    queue.add("a");
    drop(first);
    drop(take(&queue).await);
    assert!(stays_empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn an_unwinding_worker_gives_its_key_back() {
    let queue = queue();
    queue.add("a");
    let other = queue.clone();
    let worker = tokio::spawn(async move {
        let item = take(&other).await;
        other.add(*item);
        panic!("a worker of this test fails");
    });
    assert!(worker.await.unwrap_err().is_panic());
    assert_eq!(*take(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_several_delays_wins() {
    for delays in [[5, 2, 9], [2, 5, 9], [9, 5, 2]] {
        let (queue, start) = (queue(), Instant::now());
        for seconds in delays {
            queue.add_after("a", Duration::from_secs(seconds));
        }
        drop(take(&queue).await);
        assert_eq!(start.elapsed().as_secs(), 2);
        assert!(stays_empty(&queue).await, "an overtaken delay must not count");
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_delay_wakes_a_worker_that_sleeps_until_a_later_one() {
    let (queue, start) = (queue(), Instant::now());
    queue.add_after("late", Duration::from_secs(60));
    let other = queue.clone();
    let waiting = tokio::spawn(async move { *take(&other).await });
    tokio::task::yield_now().await;
    queue.add_after("soon", Duration::from_secs(1));
    assert_eq!(waiting.await.unwrap(), "soon");
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_length_or_without_end_is_taken_as_it_is() {
    let queue = queue();
    queue.add_after("never", Duration::MAX);
    queue.add_after("now", Duration::ZERO);
    assert_eq!(*take(&queue).await, "now");
    assert!(stays_empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_key_waiting_for_its_time_can_be_added_meanwhile() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(5));
    queue.add("a");
    drop(take(&queue).await);
    drop(take(&queue).await);
    assert!(stays_empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn each_failure_doubles_the_wait_up_to_the_cap_until_forgotten() {
    let queue = queue();
    for want in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
        let start = Instant::now();
        assert_eq!(queue.retry(&"a", Duration::ZERO), Duration::from_millis(want));
        drop(take(&queue).await);
        assert_eq!(start.elapsed().as_millis(), u128::from(want));
    }
    assert_eq!(queue.failures(&"a"), 9);
    assert_eq!(queue.failures(&"b"), 0, "failures are counted per key");
    queue.forget(&"a");
    assert_eq!(queue.retry(&"a", Duration::ZERO), Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_at_least_as_long_as_the_server_asked_for() {
    let queue = queue();
    assert_eq!(queue.retry(&"a", Duration::from_secs(7)), Duration::from_secs(7));
    assert_eq!(queue.retry(&"a", Duration::from_millis(1)), Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_nothing_comes_out_and_nothing_goes_in() {
    let queue = queue();
    queue.add("waits");
    queue.add_after("later", Duration::from_secs(1));
    queue.shut_down();
    queue.add("new");
    queue.add_after("new", Duration::from_secs(1));
    queue.retry(&"new", Duration::ZERO);
    assert!(queue.next().await.is_none());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(queue.next().await.is_none());
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn shutdown_wakes_every_waiting_worker() {
    let queue = queue();
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(timeout(A_WHILE, async move { queue.next().await.is_none() }))
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in waiting {
        assert!(worker.await.unwrap().expect("it must wake"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_loses_no_key() {
    let queue = queue();
    for _ in 0..3 {
        assert!(timeout(Duration::from_secs(1), queue.next()).await.is_err());
    }
    queue.add("a");
    assert_eq!(*take(&queue).await, "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_missed_or_shared_under_many_producers_and_workers() {
    static IN_HAND: [AtomicUsize; 20] = [const { AtomicUsize::new(0) }; 20];
    static VERSION: [AtomicUsize; 20] = [const { AtomicUsize::new(0) }; 20];
    static SEEN: [AtomicUsize; 20] = [const { AtomicUsize::new(0) }; 20];
    let metrics = QueueMetrics::new(&Registry::new()).unwrap();
    let queue: WorkQueue<usize> = WorkQueue::new("test", STEADY, &metrics);
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                while let Some(item) = queue.next().await {
                    assert_eq!(IN_HAND[*item].fetch_add(1, Ordering::SeqCst), 0);
                    SEEN[*item].store(VERSION[*item].load(Ordering::SeqCst), Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    IN_HAND[*item].fetch_sub(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                for round in 0..20_000 {
                    VERSION[round % 20].fetch_add(1, Ordering::SeqCst);
                    queue.add(round % 20);
                    if round % 100 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    let settled = || (0..20).all(|key| SEEN[key].load(Ordering::SeqCst) == 4_000);
    timeout(Duration::from_secs(30), async {
        while !settled() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("every key must be handled after its last change");
    queue.shut_down();
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_scrape_shows_the_queue_under_the_upstream_names() {
    let registry = Registry::new();
    let metrics = QueueMetrics::new(&registry).unwrap();
    let queue = WorkQueue::new("node", STEADY, &metrics);
    for key in ["a", "b", "c", "a"] {
        queue.add(key);
    }
    let held = take(&queue).await;
    queue.retry(&"d", Duration::from_secs(60));
    tokio::time::advance(Duration::from_secs(2)).await;
    let scrape = || TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let text = scrape();
    for line in [
        "workqueue_adds_total{name=\"node\"} 3",
        "workqueue_retries_total{name=\"node\"} 1",
        "workqueue_depth{name=\"node\"} 2",
        "workqueue_unfinished_work_seconds{name=\"node\"} 2",
        "workqueue_longest_running_processor_seconds{name=\"node\"} 2",
        "workqueue_queue_duration_seconds_count{name=\"node\"} 1",
        "workqueue_queue_duration_seconds_bucket{name=\"node\",le=\"10\"} 1",
        "workqueue_work_duration_seconds_count{name=\"node\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    let buckets = text.lines().filter(|l| l.starts_with("workqueue_work_duration_seconds_bucket"));
    assert_eq!(buckets.count(), 11, "ten buckets and +Inf");
    drop(held);
    let text = scrape();
    assert!(text.contains("workqueue_unfinished_work_seconds{name=\"node\"} 0\n"), "{text}");
    assert!(text.contains("workqueue_work_duration_seconds_sum{name=\"node\"} 2\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_gone_leaves_no_depth_behind() {
    let registry = Registry::new();
    let metrics = QueueMetrics::new(&registry).unwrap();
    let old = WorkQueue::new("node", STEADY, &metrics);
    old.add("a");
    let new = WorkQueue::new("node", STEADY, &metrics);
    new.add("a");
    let depth = || {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().find(|line| line.starts_with("workqueue_depth{")).map(str::to_owned)
    };
    assert_eq!(depth().unwrap(), "workqueue_depth{name=\"node\"} 2");
    drop(old);
    assert_eq!(depth().unwrap(), "workqueue_depth{name=\"node\"} 1");
}

#[tokio::test(start_paused = true)]
async fn the_timer_ends_with_its_queue() {
    let queue = queue();
    queue.add_after("a", A_WHILE);
    assert!(timeout(Duration::from_secs(1), queue.next()).await.is_err());
    let tasks = tokio::runtime::Handle::current().metrics();
    assert_eq!(tasks.num_alive_tasks(), 1);
    drop(queue);
    tokio::task::yield_now().await;
    assert_eq!(tasks.num_alive_tasks(), 0);
}
