//! [`Load`]: how many requests wait for their answers, and what a busy process does about it
//! (`rule:busy-processes-rest`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

/// So many requests that wait for their answers make a process busy.
const BUSY: usize = 8;
/// What a thread of a busy process sleeps before it waits for something to do.
const REST: Duration = Duration::from_millis(5);

static OF_PROCESS: LazyLock<Load> = LazyLock::new(Load::default);

/// Sleeps for 5 ms while eight requests or more wait for their answers over HTTP/2. For the threads
/// of a runtime, each time before they park: what comes meanwhile is then read, handled and
/// answered together. Not for threads that keep a deadline of milliseconds.
pub fn rest_if_busy() {
    if let Some(rest) = OF_PROCESS.rest() {
        thread::sleep(rest);
    }
}

/// Counts requests that wait for the headers of their answers; clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Load(Arc<AtomicUsize>);

impl Load {
    /// Of all connections that [`crate::open`] makes.
    pub(super) fn of_process() -> Self {
        OF_PROCESS.clone()
    }

    /// One more waits, until what is returned is dropped.
    pub(super) fn begin(&self) -> Waiting {
        self.0.fetch_add(1, Ordering::Relaxed);
        Waiting(Arc::clone(&self.0))
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// How long to rest; `None` where every answer counts.
    pub(super) fn rest(&self) -> Option<Duration> {
        (self.waiting() >= BUSY).then_some(REST)
    }
}

/// A request that waits for its answer.
pub(super) struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
