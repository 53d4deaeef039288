//! Notices a silent server behind an HTTP/2 connection (`rule:dead-connections-are-noticed`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, sleep_until, timeout};

/// Stock's read-idle and ping timeouts.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(30);
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// When the server was last heard of.
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

    /// It was heard of just now.
    pub(super) fn note(&self) {
        let since = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }
}

/// Asks a server that is silent whether it is there; returns when it does not say so.
pub(super) async fn until_silent(mut pings: PingPong, heard: &Heard) {
    loop {
        let due = heard.last() + PING_INTERVAL;
        if Instant::now() < due {
            sleep_until(due).await;
            continue;
        }
        let asked = heard.last();
        let answered = timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await;
        if matches!(answered, Ok(Ok(_))) {
            heard.note();
        } else if heard.last() == asked {
            return;
        }
    }
}
