//! Keeps a copy of all objects of one type and tells its subscribers what changed.
//!
//! One [`Informer`] lists and watches one resource for all controllers of the process. What it
//! promises (`host.md` 11):
//!
//! - The store changes before the handlers hear of it, and they hear of all changes in one order.
//! - A handler that subscribes late first gets `Added` for everything in the store, with no delta
//!   lost or doubled in between.
//! - What vanished while the connection was down is delivered as `Deleted` with the last known
//!   object. Such a deletion rests on a **consistent** list only: a list at resourceVersion 0 may
//!   come from a server that lags behind, and a controller that frees resources on it would free
//!   what is in use (`node-ipam.md` 5.3). A list that is older than what was seen before is
//!   refused for the same reason.
//! - A name that comes back with another UID is `Deleted` and `Added`, never `Updated`.
//! - An object never goes back to an older version.
//! - `Updated` may skip versions in between; nothing may rely on seeing each one.
//!
//! Handlers run in the informer's own task, one after the other. They must not block and must not
//! panic: put a key into a work queue and return.
//!
//! **Why not kube's watcher.** Its streaming list asks for resourceVersion 0, it does not fall
//! back to paged lists, its shared streams never deliver deletes, and one slow subscriber stops
//! all (`rust-guide.md` 2). The protocol itself is small, and here it can be read as one state
//! machine.
//!
//! | file | holds |
//! |---|---|
//! | `informer.rs` | [`Informer`], the handle that controllers use |
//! | `store.rs` | the objects, the handlers, and the lock between them |
//! | `delta.rs` | [`Delta`] |
//! | `reflector.rs` | the state machine: list, watch, and what follows each failure |
//! | `list.rs` | a consistent list, streamed or in pages |
//! | `staged.rs` | what a list has brought so far |
//! | `stream.rs` | an open watch |
//! | `splitter.rs` | cuts it into messages without copying: `lines.rs` for JSON, `messages.rs` for protobuf |
//! | `decode.rs` | the encodings: `json.rs` and `protobuf.rs` |
//! | `request.rs` | the requests |
//! | `fault.rs`, `backoff.rs` | what can go wrong, and how long to wait then |
//! | `metrics.rs` | the `icm_informer_*` metrics |

mod backoff;
mod decode;
mod delta;
mod fault;
mod informer;
mod lines;
mod list;
mod messages;
mod metrics;
mod reflector;
mod request;
#[cfg(test)]
mod script;
mod splitter;
mod staged;
mod store;
mod stream;

pub use delta::Delta;
pub use informer::Informer;
pub use metrics::InformerMetrics;
