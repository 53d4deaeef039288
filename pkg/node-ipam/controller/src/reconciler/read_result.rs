//! [`ReadBack`]: what a consistent read led to, and what the queue is told then and after a 429.

use std::time::Duration;

use tokio::time::Instant;
use workqueue::{Next, Retry};

use crate::allocator::AfterRead;

/// The server refused a PATCH or a read by 429 (`rule:throttling-is-no-failure`).
pub(super) fn throttled(retry_after: Option<Duration>) -> Retry {
    Retry::throttled("the server asked to wait", retry_after)
}

/// What a consistent read led to.
#[derive(Debug)]
pub(super) enum ReadBack {
    /// The Node is alive and has no CIDRs; the allocator says what follows.
    Empty(AfterRead),
    /// Everything that the read said is carried out.
    Settled,
    /// There was no answer, or we are asked to stop.
    Unread(Result<Next, Retry>),
}

impl ReadBack {
    /// What the queue is told; `resend` is for a PATCH that is to be sent (again).
    pub(super) fn next(self, resend: Result<Next, Retry>) -> Result<Next, Retry> {
        match self {
            Self::Empty(AfterRead::Send) => resend,
            Self::Empty(AfterRead::Wait(until)) => {
                Ok(Next::After(until.saturating_duration_since(Instant::now())))
            }
            Self::Empty(AfterRead::Reassign | AfterRead::Settled) | Self::Settled => Ok(Next::Done),
            Self::Unread(next) => next,
        }
    }
}
