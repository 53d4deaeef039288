//! Every row of the table, and the timer on a paused clock.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::{IntCounter, Registry};
use tokio::time::Instant;
use workqueue::{
    Next, PanicLimit, QueueMetrics, Reconcile, ReconcileMetrics, Retry, WorkQueue, WorkerOptions,
    run_workers,
};

use super::*;
use crate::options::Direction::{FromCloud, FromCluster};

const BLOCK: &str = "10.0.1.0/24";
const OTHER: &str = "10.0.2.0/24";

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn step(direction: Direction, has: Option<&str>, alias: Option<&str>) -> Step {
    decide(direction, has, alias.map(net), None)
}

#[test]
fn in_both_modes_what_is_equal_is_settled() {
    for direction in [FromCluster, FromCloud] {
        assert_eq!(step(direction, Some(BLOCK), Some(BLOCK)), Step::Settled);
        assert_eq!(step(direction, Some("010.0.1.0/24"), Some(BLOCK)), Step::Settled);
    }
}

#[test]
fn in_both_modes_what_differs_is_a_mismatch_and_garbage_too() {
    for direction in [FromCluster, FromCloud] {
        assert_eq!(step(direction, Some(OTHER), Some(BLOCK)), Step::Mismatch);
        assert_eq!(step(direction, Some("garbage"), Some(BLOCK)), Step::Mismatch);
    }
    assert_eq!(step(FromCluster, Some("garbage"), None), Step::Mismatch);
}

/// `rule:reserved-block-is-kept`
#[test]
fn from_cluster_an_alias_of_our_own_is_gone_on_with() {
    let ours = |ours| decide(FromCluster, None, Some(net(BLOCK)), Some(net(ours)));
    assert_eq!(ours(BLOCK), Step::Allocate);
    assert!(matches!(ours(OTHER), Step::WrongMode(_)));
}

/// Does what it is told, and notes when.
struct Scripted {
    script: Mutex<Vec<bool>>,
    came: Mutex<Vec<Instant>>,
    queue: WorkQueue<u8>,
    resync: Duration,
}

impl Reconcile for Scripted {
    type Key = u8;

    async fn reconcile(&self, _: &u8) -> Result<Next, Retry> {
        self.came.lock().push(Instant::now());
        match self.script.lock().pop() {
            Some(true) => Ok(Next::After(self.resync)),
            Some(false) => Err(Retry::new("it did not work")),
            None => {
                self.queue.shut_down();
                Ok(Next::Done)
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_timer_resyncs_after_success_and_backs_off_after_failures_in_a_row() {
    const SECONDS: fn(u64) -> Duration = Duration::from_secs;
    let backoff = Backoff::doubling(SECONDS(1), SECONDS(5), Jitter::None);
    let script = "ok ok e e e e e ok ok e e ok";
    let mut results: Vec<_> = script.split(' ').map(|result| result == "ok").collect();
    results.reverse();
    let registry = Registry::new();
    let queue = WorkQueue::new("q", backoff, &QueueMetrics::new(&registry).unwrap());
    let scripted = Arc::new(Scripted {
        script: Mutex::new(results),
        came: Mutex::default(),
        queue: queue.clone(),
        resync: SECONDS(10),
    });
    queue.add(1);
    let options = WorkerOptions {
        workers: 1,
        limit: SECONDS(60),
        ready: None,
        metrics: ReconcileMetrics::new(&registry).unwrap().of_controller("test"),
        panics: PanicLimit::new(IntCounter::new("panics", "Contained panics.").unwrap()),
    };
    run_workers(queue, Arc::clone(&scripted), options).await.unwrap();
    let came = scripted.came.lock().clone();
    let waits: Vec<_> = came.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(waits, [10, 10, 1, 2, 4, 5, 5, 10, 10, 1, 2, 10]);
}

#[test]
fn the_product_has_upstreams_times() {
    assert_eq!(RESYNC.as_secs(), 30);
    assert_eq!(BACKOFF.delay(0), Duration::from_millis(250));
    assert_eq!(BACKOFF.delay(100), Duration::from_secs(10));
}
