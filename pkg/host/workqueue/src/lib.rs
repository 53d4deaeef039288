//! A queue of keys and the workers that handle them, with the contract of client-go's work queue.
//!
//! - **Stingy.** A key that is added ten times before a worker takes it is handled once.
//! - **Exclusive.** A key is never handled by two workers at once.
//! - **Nothing is missed.** A key that is added while it is handled is handled again afterwards:
//!   the handler may have read the state before the change.
//! - **New work first.** Keys that were added are taken before keys that came back, in the order
//!   in which they became due; but of every five keys one is of those that came back.
//! - **Patient.** A key can wait: [`WorkQueue::add_after`] keeps the earliest of several times,
//!   [`WorkQueue::retry`] waits longer after each failure until [`WorkQueue::forget`].
//! - **Ends cleanly.** After [`WorkQueue::shut_down`] nothing is handed out and nothing is taken
//!   in; work in hand is finished.
//! - **Limited.** One handling has a limit of time; a panic costs one key some minutes, not the
//!   process.
//!
//! Controllers implement [`Reconcile`]; the manager gives it to [`run_workers`]. Informer handlers
//! only ever call [`WorkQueue::add`]. `RULES.md` gives the reasons.
//!
//! | file | holds |
//! |---|---|
//! | `queue.rs` | [`WorkQueue`]: the locks and wake-ups around the schedule; [`Item`] |
//! | `schedule.rs` | the state of each key, a plain value: keys that come back later, after failures, or after a panic |
//! | `state.rs` | keys that wait, since when, and keys that are being handled |
//! | `worker.rs` | [`Reconcile`], [`run_workers`] |
//! | `panic_limit.rs` | panics at many different keys |
//! | `metrics.rs` | the `workqueue_*` and `icm_reconcile_*` metrics |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod metrics;
mod panic_limit;
mod queue;
mod schedule;
mod state;
mod worker;

use std::error::Error;
use std::time::Duration;

pub use metrics::{ControllerMetrics, QueueMetrics, ReconcileMetrics};
pub use panic_limit::{PanicConsequence, PanicLimit};
pub use queue::{Item, LastFailure, WorkQueue};
pub use resilience::{Backoff, Jitter};
pub use state::Key;
pub use worker::{Ready, Reconcile, TooManyPanics, WorkerOptions, run_workers};

/// When the server asks to come back later and does not say when.
const THROTTLED: Duration = Duration::from_secs(1);

/// Result of a handled key. Ends its row of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until it is added again.
    Done,
    /// The key is handled again after this time.
    After(Duration),
}

/// Why a key could not be handled, and how it is tried again. Every error becomes one with `?`:
/// tried again after the key's backoff, and logged.
#[derive(Debug)]
pub struct Retry {
    pub(crate) error: Box<dyn Error + Send + Sync>,
    pub(crate) at_least: Duration,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Failure,
    Expected,
    Throttled,
}

impl Retry {
    /// A failure of this key, which waits longer after each.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), at_least: Duration::ZERO, kind: Kind::Failure }
    }

    /// An expected event such as a conflict, not a failure: waits like one, but is counted
    /// apart and logged at `-v=4` only.
    pub fn expected(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Expected, ..Self::new(reason) }
    }

    /// The server asked to wait. That says nothing about the key: its row of failures neither grows
    /// nor ends, and after `retry_after` it is taken before every younger key. A server that does
    /// not say how long, or says not at all, gets a second: it has too much to do.
    pub fn throttled(
        reason: impl Into<Box<dyn Error + Send + Sync>>,
        retry_after: Option<Duration>,
    ) -> Self {
        let pause = retry_after.filter(|pause| !pause.is_zero()).unwrap_or(THROTTLED);
        Self { kind: Kind::Throttled, at_least: pause, ..Self::new(reason) }
    }

    /// Sets the shortest wait, such as a server's `Retry-After`.
    #[must_use]
    pub fn at_least(mut self, pause: Duration) -> Self {
        self.at_least = pause;
        self
    }

    /// The reason.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.error.as_ref()
    }

    /// The shortest wait.
    pub fn pause(&self) -> Duration {
        self.at_least
    }

    /// Whether the server asked for it.
    pub fn is_throttled(&self) -> bool {
        self.kind == Kind::Throttled
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Retry {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
