//! Which contained panics are logged, one per place and minute, and when there were too many.

use std::collections::VecDeque;
use std::time::Duration;

use backoff::KeyedLogGate;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Panics of one set of workers.
pub(crate) struct PanicLimit {
    seen: Mutex<Seen>,
    /// By place.
    shown: KeyedLogGate<String>,
}

impl Default for PanicLimit {
    fn default() -> Self {
        Self { seen: Mutex::default(), shown: KeyedLogGate::new(Self::WINDOW) }
    }
}

#[derive(Default)]
struct Seen {
    recent: VecDeque<Instant>,
    exceeded: Option<(usize, String)>,
}

/// What to do about a panic.
pub(crate) struct Verdict {
    /// Its place has not been logged for a minute.
    pub(crate) show: bool,
    /// It is the fifth within a minute.
    pub(crate) exceeded: bool,
}

impl PanicLimit {
    const WINDOW: Duration = Duration::from_secs(60);
    const MOST: usize = 5;

    pub(crate) fn record(&self, location: &str) -> Verdict {
        let now = Instant::now();
        let mut seen = self.seen.lock();
        seen.recent.retain(|at| now.duration_since(*at) < Self::WINDOW);
        seen.recent.push_back(now);
        let show = self.shown.pass(location.to_owned(), now).is_some();
        let exceeded = seen.recent.len() >= Self::MOST;
        if exceeded {
            seen.exceeded = Some((seen.recent.len(), location.to_owned()));
        }
        Verdict { show, exceeded }
    }

    /// Gives up at once.
    pub(crate) fn exceed(&self, location: &str) {
        let mut seen = self.seen.lock();
        let count = seen.recent.len() + 1;
        seen.exceeded.get_or_insert((count, location.to_owned()));
    }

    /// How many panics there were and the place of the last, once there were too many.
    pub(crate) fn exceeded(&self) -> Option<(usize, String)> {
        self.seen.lock().exceeded.clone()
    }
}
