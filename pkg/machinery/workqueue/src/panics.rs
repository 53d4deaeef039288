//! Containment of panics: catching one with the place where it happened, logging a place once a
//! minute, and knowing when there were too many (`host.md` 9.4).

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A contained panic.
#[derive(Debug, Default)]
pub(crate) struct Caught {
    pub(crate) message: String,
    /// `file:line:column`.
    pub(crate) location: String,
    /// Present when `RUST_BACKTRACE` asks for it.
    pub(crate) backtrace: Option<String>,
}

thread_local! {
    /// A contained future is being polled on this thread.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// Place and backtrace of the panic that is unwinding on this thread.
    static PLACE: RefCell<Option<(String, Option<String>)>> = const { RefCell::new(None) };
}

/// Runs a future to its end or to its panic.
///
/// The future is not polled again after a panic. What it shared may be half-changed; callers give
/// up on that state after a few panics ([`PanicLimit`]).
pub(crate) async fn contain<F: Future>(future: F) -> Result<F::Output, Caught> {
    keep_places();
    let mut future = pin!(future);
    poll_fn(|context| {
        let outer = CONTAINED.replace(true);
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        CONTAINED.set(outer);
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(caught(payload.as_ref()))),
        }
    })
    .await
}

fn caught(payload: &(dyn Any + Send)) -> Caught {
    let (location, backtrace) = PLACE.take().unwrap_or_default();
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    Caught { message, location, backtrace }
}

/// Only a panic hook sees where a panic happened; the payload does not say.
fn keep_places() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                return before(info);
            }
            let location = info.location().map(ToString::to_string).unwrap_or_default();
            let backtrace = Backtrace::capture();
            let captured = backtrace.status() == BacktraceStatus::Captured;
            PLACE.set(Some((location, captured.then(|| backtrace.to_string()))));
        }));
    });
}

/// Panics of one set of workers.
#[derive(Default)]
pub(crate) struct PanicLimit {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    recent: VecDeque<Instant>,
    shown: HashMap<String, Instant>,
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
        seen.shown.retain(|_, at| now.duration_since(*at) < Self::WINDOW);
        let show = !seen.shown.contains_key(location);
        if show {
            seen.shown.insert(location.to_owned(), now);
        }
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
