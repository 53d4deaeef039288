//! Whole objects and how to write them: what a controller of custom resources stands on.
//!
//! An [`Object`] is all of what the server sent, with a typed view of the fields that the
//! controller knows; an [`ObjectClient`] changes it without losing the rest, or what others write
//! at the same time. Its calls end in a result or in an [`Error`] whose [`Outcome`] says whether
//! the write may have happened.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use objects::{Error, Schema, Object, ObjectClient};
//! # use serde::{Deserialize, Serialize};
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Spec { size: u32 }
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Body { spec: Spec }
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Status { ready: bool }
//!
//! #[derive(Debug)]
//! enum Widget {}
//! impl Schema for Widget {
//!     type Body = Body;
//!     type Status = Status;
//! }
//!
//! # async fn story(widgets: ObjectClient<Widget>, cached: Arc<Object<Widget>>) -> Result<(), Error> {
//! let held = widgets.add_finalizer(&cached, "example.org/widget").await?.object;
//! let shown = widgets.change_status(&held, |widget, status| {
//!     status.ready = widget.body.spec.size > 0;
//! });
//! shown.await?;
//! # Ok(())
//! # }
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `object.rs`, `object_meta.rs` | [`Schema`], the typed view of one kind; [`Object`], [`ObjectMeta`]; [`Draft`], what may be changed |
//! | `patch.rs` | lays typed changes over whole JSON; makes merge patches |
//! | `object_client.rs` | [`ObjectClient`]; below it change and delete |
//! | `own_writes.rs` | the newest copies from answers; [`OpenWrites`] |
//! | `calls.rs`, `error.rs` | single requests; what their answers mean: [`Error`], [`Outcome`] |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod calls;
mod error;
mod object;
mod object_client;
mod object_meta;
mod own_writes;
mod patch;
#[cfg(test)]
mod testing;

pub use calls::Part;
pub use error::{Error, Outcome, Why};
pub use object::{DecodeError, Draft, DraftMetadata, Dynamic, Object, Schema};
pub use object_client::{Apply, Created, Deletion, Merge, ObjectClient, Written};
pub use object_meta::{ObjectMeta, OwnerReference};
pub use own_writes::OpenWrites;
