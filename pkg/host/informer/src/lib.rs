//! Keeps a copy of all objects of one source and tells its subscribers what changed.
//!
//! One [`Informer`] lists and watches one [`Source`] for all controllers of the process. What it
//! promises:
//!
//! - The store changes before the handlers hear of it, and they hear of all changes in one order.
//! - A handler that subscribes late first gets `Added` for everything in the store, with no delta
//!   lost or doubled in between.
//! - What vanished while the connection was down is delivered as `Deleted` with the last known
//!   object. Such a deletion rests on a **consistent** list only: a list at resourceVersion 0 may
//!   come from a server that lags behind, and a controller that frees resources on it would free
//!   what is in use. A list that is older than what was seen before is
//!   refused for the same reason.
//! - A name that comes back with another UID is `Deleted` and `Added`, never `Updated`.
//! - An object never goes back to an older version.
//! - `Updated` may skip versions in between; nothing may rely on seeing each one. It may also tell of
//!   an object as it was told before ([`Informer::redeliver`]).
//!
//! - A handler that panics, or a history of the server that goes back, ends the [`Session`] of the
//!   users concerned and of no others: they start from nothing, on the same informer.
//!
//! Handlers run in the informer's own task, one after the other, and must not block: put a key into
//! a work queue and return.
//!
//! **Why not kube's watcher.** Its streaming list asks for resourceVersion 0, it does not fall
//! back to paged lists, its shared streams never deliver deletes, and one slow subscriber stops
//! all. The protocol itself is small, and here it can be read as one state machine.
//!
//! | file | holds |
//! |---|---|
//! | `informer.rs` | [`Informer`], the handle that controllers use; [`Subscription`] of a handler; [`Position`] of the cache |
//! | `source.rs` | [`Source`], what an informer lists and watches |
//! | `subscribers.rs` | [`Delta`], [`Session`], and the handlers |
//! | `store.rs` | the objects and the locks |
//! | `cache.rs`, `shared.rs` | state that handles and loop share: with objects, and without |
//! | `progress.rs` | how far the informer has got, for which handles wait |
//! | `intake.rs` | the cache as the loop sees it, whatever the type of its objects |
//! | `presence.rs`, `discovery.rs` | the task of an informer; where a custom kind is served |
//! | `reflector.rs` | the state machine: list, watch, and what follows each failure |
//! | `history.rs` | a server whose resource versions go back |
//! | `comparison.rs` | finds what a watch has skipped |
//! | `list.rs`, `stream.rs` | a list, streamed or in pages; an open watch, cut into messages |
//! | `decode.rs` | reads messages, in JSON or protobuf |
//! | `request.rs` | the requests and their encodings |
//! | `fault.rs` | what can go wrong, and how long to wait then |
//! | `metrics.rs` | the `icm_informer_*` metrics, and dormant kinds, which are logged once |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod cache;
mod comparison;
mod decode;
mod discovery;
mod fault;
mod history;
mod informer;
mod intake;
mod list;
mod metrics;
mod presence;
mod progress;
mod reflector;
mod request;
mod shared;
mod source;
mod store;
mod stream;
mod subscribers;
#[cfg(test)]
mod testing;

/// Atomics of the store and its subscribers. `tests/memory-orders` compiles them with those of loom.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
}

pub use self::metrics::InformerMetrics;
pub use informer::{Informer, Position, Subscription};
pub use request::Format;
pub use source::{FirstList, MANAGED_BY, Server, Source};
pub use store::Objects;
pub use subscribers::Delta;
pub use subscribers::Session;
