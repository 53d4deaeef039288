//! Liveness and load of HTTP/2 connections: notices a silent server (`rule:dead-connections-are-noticed`).

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use h2::{Ping, PingPong, Pong};
use tokio::time::{Instant, timeout_at};

/// Stock's read-idle and ping timeouts.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(30);
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// The time at which the server was last heard.
#[derive(Debug)]
pub(super) struct Heard {
    start: Instant,
    /// Milliseconds since `start`.
    last: AtomicU64,
}

impl Heard {
    pub(super) fn now() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Notes that the server was heard just now.
    pub(super) fn note(&self) {
        let since = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }
}

/// Pings a silent server; returns when it does not answer, or when the
/// connection has ended. There is one ping at a time, whose answer may come late as long as
/// anything else comes.
pub(super) async fn until_silent(mut pings: PingPong, heard: &Heard) {
    let mut is_asked = false;
    loop {
        let last = heard.last();
        let due = last + PING_INTERVAL;
        let is_silent = Instant::now() >= due;
        if is_silent && !is_asked {
            if pings.send_ping(Ping::opaque()).is_err() {
                return;
            }
            is_asked = true;
        }
        let until = if is_silent { Instant::now() + PING_TIMEOUT } else { due };
        match timeout_at(until, pong(&mut pings, is_asked)).await {
            Ok(Ok(_)) => {
                is_asked = false;
                heard.note();
            }
            Ok(Err(_)) => return,
            Err(_) if is_silent && heard.last() == last => return,
            Err(_) => {}
        }
    }
}

/// The answer to the ping, if there was one.
async fn pong(pings: &mut PingPong, is_asked: bool) -> Result<Pong, h2::Error> {
    if !is_asked {
        return pending().await;
    }
    poll_fn(|cx| pings.poll_pong(cx)).await
}

/// The number of waiting requests that makes a process busy.
const BUSY: usize = 8;
/// The sleep of an idle thread of a busy process. Waking up for every answer and every
/// event of a watch costs a process that writes to thousands of objects half of its CPU; measured with
/// 5,000 PATCHes, the sleep saves a quarter of the CPU for a tenth of the throughput.
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
    /// The load of all connections that [`crate::open`] makes.
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
