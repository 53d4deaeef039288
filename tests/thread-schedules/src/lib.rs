//! Files of the product, compiled with the locks of shuttle, which runs a function in many random schedules of its
//! threads. The modules `keys`, `tokens` and `deltas` are such functions; the tests of this crate run them. What
//! tokio's `Notify` and `oneshot` do is one step here: tokio checks them itself.

// With their unit tests, which run with the product, the files would not compile here.
#![cfg(not(test))]
#![allow(dead_code, unreachable_pub, reason = "the files have more than is run here")]
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by panicking")]

// To the files this crate is `parking_lot`.
extern crate self as parking_lot;

pub mod deltas;
pub mod keys;
pub mod tokens;

#[path = "../../memory-orders/src/locks.rs"]
mod locks;
#[path = "../../memory-orders/src/object.rs"]
mod object;

#[path = "../../../pkg/host/workqueue/src/metrics.rs"]
#[rustfmt::skip]
mod metrics;
#[path = "../../../pkg/host/workqueue/src/queue.rs"]
#[rustfmt::skip]
mod queue;
#[path = "../../../pkg/host/workqueue/src/schedule.rs"]
#[rustfmt::skip]
mod schedule;
#[path = "../../../pkg/host/workqueue/src/state.rs"]
#[rustfmt::skip]
mod state;
#[path = "../../../pkg/host/informer/src/store.rs"]
#[rustfmt::skip]
mod store;
#[path = "../../../pkg/host/informer/src/subscribers.rs"]
#[rustfmt::skip]
mod subscribers;
#[path = "../../../pkg/host/client/src/throttle/wait_queue.rs"]
#[rustfmt::skip]
mod wait_queue;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

pub(crate) use locks::{Mutex, MutexGuard, RwLock};

mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

    /// Where a lock is freed: shuttle switches threads before that only.
    pub(crate) fn switch() {
        AtomicBool::new(false).load(Ordering::SeqCst);
    }
}

/// Runs a function in `SCHEDULES` schedules: half of them switch threads at random, half of them at three places only.
fn run(claims: &str, bounds: &str, function: fn()) {
    let number = |name, or| std::env::var(name).map_or(or, |text| text.parse().unwrap());
    let (schedules, seed) = (number("SCHEDULES", 20_000), number("SCHEDULE_SEED", 1));
    let half = usize::try_from(schedules / 2).unwrap();
    Runner::new(RandomScheduler::new_from_seed(seed, half), Config::new()).run(function);
    Runner::new(PctScheduler::new_from_seed(seed, 3, half), Config::new()).run(function);
    state_explorer::report(claims, bounds, &format!("{schedules} random schedules"));
}
