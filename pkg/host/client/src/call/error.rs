//! [`CallError`]: whether a failed request was carried out, and whether it may be repeated. Made by the
//! attempt layer, the only place that knows how far a request got; read by every caller that
//! writes.

use resilience::Fenced;
use tokio::time::Instant;
use tower::BoxError;
use transport::{ErrorChain, WireError};

use crate::call::request::{Progress, Reach, Withdrawn};

/// Why a call has no answer. Any HTTP status is an answer, not an error.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The leader's fence is closed, or leaves the server no time for the write. **Definitely not
    /// written.**
    #[error("{Fenced}")]
    Fenced,
    /// The caller's [`SendCheck`](crate::SendCheck) withdrew the request. **Definitely not
    /// written.**
    #[error("{Withdrawn}")]
    Withdrawn,
    /// The request never left: no connection, no credentials, or no time left before its body was
    /// taken; or the server refused it unread. **Definitely not written.**
    #[error("cannot send the request to the API server: {}", ErrorChain(.0.as_ref()))]
    NotSent(BoxError),
    /// The connection broke after the request may have left. **May have been written, and may
    /// still be until [`settled_at`](Self::settled_at).**
    #[error(
        "cannot read the answer of the API server, which may have applied the request: {}",
        ErrorChain(.source.as_ref())
    )]
    Transport {
        /// The cause.
        source: BoxError,
        /// See [`settled_at`](Self::settled_at).
        settled_at: Option<Instant>,
    },
    /// The attempt's time limit passed without an answer. **May have been written, and may still be
    /// until [`settled_at`](Self::settled_at).**
    #[error("cannot get an answer of the API server in time; it may have applied the request")]
    Timeout {
        /// See [`settled_at`](Self::settled_at).
        settled_at: Option<Instant>,
    },
}

impl CallError {
    /// From when on the server is taken to carry out the write no longer: what a consistent read
    /// shows after that moment stays as far as this request is concerned, on the assumption of
    /// `rule:writes-end-with-their-timeout` about its way to the server. `None` when nothing
    /// was sent, for a read, and for a client that [`Clients`](crate::Clients) did not build.
    pub fn settled_at(&self) -> Option<Instant> {
        match self {
            Self::Transport { settled_at, .. } | Self::Timeout { settled_at } => *settled_at,
            Self::Fenced | Self::Withdrawn | Self::NotSent(_) => None,
        }
    }

    /// Takes the verdict out of `error`. An error of a client that is not ours tells nothing, so it
    /// may have been written.
    pub(crate) fn from_kube(error: kube::Error) -> Self {
        let unknown = |source| Self::Transport { source, settled_at: None };
        match error {
            kube::Error::Service(source) => match source.downcast::<Self>() {
                Ok(verdict) => *verdict,
                Err(other) => unknown(other),
            },
            other => unknown(Box::new(other)),
        }
    }

    /// Judges the `error` of an attempt by how far its request got.
    pub(crate) fn judge(error: BoxError, progress: &Progress) -> Self {
        let reach = progress.end();
        if reach == Reach::Refused || error.is::<Fenced>() {
            return Self::Fenced;
        }
        if error.is::<Withdrawn>() {
            return Self::Withdrawn;
        }
        match error.downcast::<WireError>() {
            Ok(wire) => match reach {
                Reach::MayHaveLeft(settled_at) if !wire.is_unprocessed() => {
                    Self::Transport { source: wire, settled_at }
                }
                _ => Self::NotSent(wire),
            },
            // Only the wire sends; every other layer fails before it.
            Err(layer) => Self::NotSent(layer),
        }
    }

    /// Judges an attempt whose time is up.
    pub(crate) fn timed_out(progress: &Progress) -> Self {
        match progress.end() {
            Reach::Refused => Self::Fenced,
            Reach::NotSent => {
                let missing = "no credentials, connection or free stream within the time limit";
                Self::NotSent(missing.into())
            }
            Reach::MayHaveLeft(settled_at) => Self::Timeout { settled_at },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Method;

    use super::*;
    use crate::testing::request;

    #[test]
    fn a_write_that_left_is_unwritten_only_when_the_server_did_not_process_it() {
        let left = || {
            let progress = Progress::new(&request(Method::PATCH, "/a"), None);
            assert!(progress.take_body(Duration::from_secs(1)));
            progress
        };
        let refused = CallError::judge(Box::new(WireError::unprocessed("refused")), &left());
        assert!(matches!(refused, CallError::NotSent(_)), "{refused}");
        let broken = CallError::judge(Box::new(WireError::broken("reset")), &left());
        assert!(matches!(broken, CallError::Transport { settled_at: Some(_), .. }), "{broken}");
    }
}
