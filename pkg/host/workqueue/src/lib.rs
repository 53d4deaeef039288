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
//! | `queue.rs` | [`WorkQueue`]: the locks and wake-ups around the schedule |
//! | `schedule.rs` | the state of each key, a plain value made of the next two |
//! | `state.rs` | keys that wait, since when, and keys that are being handled |
//! | `delays.rs` | keys that come back later, after failures, or after a panic |
//! | `key.rs` | [`Key`], [`Item`], [`Next`], [`Retry`] and [`LastFailure`] |
//! | `worker.rs` | [`Reconcile`], [`run_workers`] |
//! | `panic_limit.rs` | panics at many different keys |
//! | `metrics.rs` | the `workqueue_*` and `icm_reconcile_*` metrics |

mod delays;
mod key;
mod metrics;
mod panic_limit;
mod queue;
mod schedule;
mod state;
mod worker;

pub use self::metrics::QueueMetrics;
pub use key::Item;
pub use key::Key;
pub use key::LastFailure;
pub use key::{Next, Retry};
pub use metrics::{ControllerMetrics, ReconcileMetrics};
pub use panic_limit::{PanicLimit, Verdict};
pub use queue::WorkQueue;
pub use resilience::{Backoff, Jitter};
pub use worker::{Ready, Reconcile, TooManyPanics, WorkerOptions, run_workers};
