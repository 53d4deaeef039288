//! The question that decides whether an absent Lease may be created at once
//! (rule:lease-absent-is-not-free). Asked by [`crate::elector`], answered by the command.

use std::future::Future;
use std::pin::Pin;

/// Whether a leader before this process may have worked on this cluster; why that cannot be said.
pub type PredecessorAnswer = Pin<Box<dyn Future<Output = Result<bool, String>> + Send>>;

/// Finds out whether a leader may exist that still believes in a Lease which is gone. Called on
/// the lease thread, before this process leads and only while there is no Lease.
pub type PredecessorCheck = Box<dyn Fn() -> PredecessorAnswer + Send + Sync>;
