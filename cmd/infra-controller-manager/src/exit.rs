//! Why the process ends without being asked to, and what its exit code then is.

/// An end with code 1.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// Another process may lead by now.
    // rule:lost-lease-ends-the-process
    #[error("leaderelection lost: {0}")]
    LeadershipLost(String),
    /// The lease is left to expire.
    #[error("controllers did not stop in time: {}; the lease is left to expire", .0.join(", "))]
    ShutdownTimedOut(Vec<&'static str>),
}

/// Whether nothing more may be sent (rule:lost-lease-ends-the-process).
pub(crate) fn is_lost_leadership(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Fatal::LeadershipLost(_)))
}
