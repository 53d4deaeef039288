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
//! - A handler that panics, or a history of the server that begins anew, ends the [`Session`] of
//!   the users concerned and of nobody else: they start from nothing, on the same informer.
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
//! | `informer.rs`, `run.rs` | [`Informer`], the handle that controllers use; its task |
//! | `source.rs` | [`Source`], what an informer lists and watches |
//! | `session.rs` | [`Session`], one user of informers |
//! | `subscription.rs` | [`Subscription`] of a handler |
//! | `cache.rs`, `shared.rs`, `progress.rs` | what handles and loop share; what of it depends on no type; how far the store has come |
//! | `intake.rs` | the cache as the loop sees it, whatever the type of its objects |
//! | `store.rs`, `objects.rs`, `subscribers.rs` | the objects, the handlers, and the locks between them |
//! | `delta.rs` | [`Delta`] |
//! | `presence.rs`, `discovery.rs` | where a custom kind is served, and while it is not |
//! | `reflector.rs` | the state machine: list, watch, and what follows each failure |
//! | `history.rs`, `doubt.rs` | a server whose resource versions go back; whether it may be one |
//! | `list.rs` | a list, streamed or in pages |
//! | `staged.rs` | what a list has brought so far |
//! | `stream.rs` | an open watch |
//! | `splitter.rs` | cuts it into messages without copying: `lines.rs` for JSON, `messages.rs` for protobuf |
//! | `encoding.rs` | which encoding is asked for, and which one an answer has |
//! | `decode.rs`, `message.rs` | reads an answer, in `json.rs` or `protobuf.rs`; what comes out of it |
//! | `unreadable.rs`, `limits.rs` | objects that cannot be decoded; how much of an answer is taken |
//! | `request.rs` | the requests |
//! | `fault.rs`, `retry.rs` | what can go wrong, and how long to wait then |
//! | `metrics.rs`, `gauges.rs` | the `icm_informer_*` metrics |

mod cache;
mod decode;
mod discovery;
mod fault;
mod history;
mod informer;
mod intake;
mod list;
mod log_once;
mod metrics;
mod presence;
mod reflector;
mod request;
mod shared;
mod source;
mod splitter;
mod store;
mod stream;
mod subscribers;
#[cfg(test)]
mod testing;

pub use self::metrics::InformerMetrics;
pub use informer::Informer;
pub use informer::Subscription;
pub use request::Format;
pub use source::{FirstList, MANAGED_BY, Server, Source};
pub use store::Objects;
pub use subscribers::Delta;
pub use subscribers::Session;
