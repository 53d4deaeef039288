//! A queue of keys and the workers that handle them, with the contract of client-go's work queue.
//!
//! - **Stingy.** A key that is added ten times before a worker takes it is handled once.
//! - **Exclusive.** A key is never handled by two workers at once.
//! - **Nothing is missed.** A key that is added while it is handled is handled again afterwards:
//!   the handler may have read the state before the change.
//! - **Fair.** Keys are taken in the order in which they became due.
//! - **Patient.** A key can wait: [`WorkQueue::add_after`] keeps the earliest of several times,
//!   [`WorkQueue::retry`] waits longer after each failure until [`WorkQueue::forget`].
//! - **Ends cleanly.** After [`WorkQueue::shut_down`] nothing is handed out and nothing is taken
//!   in; work in hand is finished.
//! - **Contains panics.** A panic costs one attempt at one key, not the process (`host.md` 9.4).
//!
//! Controllers implement [`Reconcile`] and give it to [`run_workers`]; informer handlers only ever
//! call [`WorkQueue::add`].
//!
//! | file | holds |
//! |---|---|
//! | `queue.rs` | [`WorkQueue`]: the locks and wake-ups around the next two |
//! | `state.rs` | which keys wait and which are being handled, a plain value |
//! | `delays.rs` | which keys come later, a plain value |
//! | `item.rs` | [`Item`], the right to work on a key |
//! | `worker.rs` | [`Reconcile`], [`Next`], [`run_workers`] |
//! | `panic_limit.rs` | which panics are logged, and when there are too many |
//! | `metrics.rs` | the `workqueue_*` metrics |

mod delays;
mod item;
mod metrics;
mod panic_limit;
mod queue;
mod state;
mod worker;

pub use backoff::{Backoff, Jitter};
pub use item::Item;
pub use metrics::QueueMetrics;
pub use queue::{Key, WorkQueue};
pub use worker::{Next, Reconcile, TooManyPanics, run_workers};
