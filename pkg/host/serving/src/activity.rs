//! When a connection is idle: nothing runs on it, and nothing was asked for a while.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// What runs on one connection.
pub(crate) struct Activity(Mutex<State>);

struct State {
    has_tls: bool,
    running: usize,
    last: Instant,
}

/// How far a connection has come; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// TLS is not agreed.
    Handshake,
    /// No request is being answered.
    Idle,
    /// At least one is.
    Busy,
}

/// A request being answered.
pub(crate) struct Running(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { has_tls: false, running: 0, last: Instant::now() })))
    }

    /// TLS is agreed.
    pub(crate) fn agreed(&self) {
        let mut state = self.0.lock();
        (state.has_tls, state.last) = (true, Instant::now());
    }

    pub(crate) fn stage(&self) -> Stage {
        match *self.0.lock() {
            State { running: 1.., .. } => Stage::Busy,
            State { has_tls: true, .. } => Stage::Idle,
            State { .. } => Stage::Handshake,
        }
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        self.0.lock().running += 1;
        Running(self.clone())
    }

    /// Ends when nothing has run for `limit`.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let due = self.idle_at(now, limit);
            if now >= due {
                return;
            }
            sleep_until(due).await;
        }
    }

    fn idle_at(&self, now: Instant, limit: Duration) -> Instant {
        let state = self.0.lock();
        if state.running > 0 { now + limit } else { state.last + limit }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.running -= 1;
        state.last = Instant::now();
    }
}
