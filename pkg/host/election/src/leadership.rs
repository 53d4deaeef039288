//! What the owner of an election gets to see: states, outcomes, events.

/// Where this process stands, as published by [`crate::Elector::leadership`].
///
/// `Standby` → `Leading` → `Lost`, never back (rule:lease-lost-is-final). After a release or an
/// abandonment the state is `Standby` with no holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// Someone else leads, or nobody does yet.
    Standby {
        /// The holder last seen.
        holder: Option<String>,
    },
    /// This process leads.
    Leading,
    /// The lease is lost; the fence is closed and the process must exit 1 within a second.
    Lost {
        /// Why, for the log.
        reason: String,
    },
}

/// How the attempt to give the lease back ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// The lease is free: the next leader starts at once.
    Freed,
    /// This process did not hold it.
    NotHeld,
    /// The server did not confirm; the next leader may have to wait for the lease to expire.
    LeftToExpire {
        /// Why, for the log.
        reason: String,
    },
}

/// Something to publish as an Event of type Normal and reason `LeaderElection` on the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseEvent {
    /// `metadata.uid` of the Lease, without which `kubectl describe` does not show the event.
    pub lease_uid: String,
    /// `<identity> became leader` or `<identity> stopped leading`.
    pub message: String,
}
