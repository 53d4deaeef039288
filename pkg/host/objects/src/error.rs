//! [`Error`]: why a call has no result, and whether it may have been carried out.

use std::time::Duration;

use client::CallError;
use http::StatusCode;
use tokio::time::Instant;

use crate::DecodeError;

/// What is known of a write that did not return an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server did not carry it out and never will.
    NotWritten,
    /// The server may have carried it out, or may yet.
    Unknown,
    /// The server carried it out.
    Written,
}

/// A call that failed: which, on what object, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {object}: {why}")]
pub struct Error {
    /// What was to be done.
    pub verb: &'static str,
    /// The plural and the key, as `widgets default/a`.
    pub object: String,
    /// Why it was not.
    pub why: Why,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// No answer; the [`CallError`] says whether the request may have been carried out.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The answer leaves it open whether the request was carried out.
    #[error("the server answered {status}, and may have carried out the request")]
    Doubtful {
        /// The answer's status.
        status: StatusCode,
        /// See [`Error::settled_at`].
        settled_at: Option<Instant>,
    },
    /// An earlier attempt may yet be carried out.
    #[error("an earlier attempt may yet be carried out, and then: {last}")]
    Open {
        /// How the last attempt ended.
        last: Box<Why>,
        /// See [`Error::settled_at`].
        settled_at: Option<Instant>,
    },
    /// Others change the object faster than it could be read and changed.
    #[error("the object was changed by others {attempts} times in a row; it is tried again later")]
    Conflict {
        /// How often.
        attempts: u32,
    },
    /// The object is gone; another may have its name.
    #[error("the object does not exist any more")]
    Gone,
    /// Its deletion was asked for, so what was wanted is not done any more.
    #[error("the object is being deleted")]
    Deleting,
    /// There is an object of this name.
    #[error("an object of this name exists already")]
    Exists,
    /// The server has too much to do.
    #[error("the server asks to come back later")]
    Throttled {
        /// What `Retry-After` said.
        retry_after: Option<Duration>,
    },
    /// The server refused it, and will refuse it again until something changes.
    #[error("the server refused it ({status}): {message}")]
    Refused {
        /// The answer's status.
        status: StatusCode,
        /// In the server's words.
        message: String,
    },
    /// The server did what was asked, but its answer is not of the kind's form.
    #[error("it is done, but {0}")]
    Unreadable(DecodeError),
    /// The object that was read is not of the kind's form.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The changed object cannot be written as JSON.
    #[error("the changed object cannot be written as JSON")]
    Encode,
    /// No object can have such a key.
    #[error("this is not a name that an object can have; correct the reference that holds it")]
    Key,
}

impl Error {
    /// What is known of the write.
    pub fn outcome(&self) -> Outcome {
        self.why.outcome()
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        let why = if let Why::Open { last, .. } = &self.why { last } else { &self.why };
        if let Why::Throttled { retry_after } = why { *retry_after } else { None }
    }

    /// From when on the server no longer carries out a write of unknown outcome; see
    /// [`CallError::settled_at`].
    pub fn settled_at(&self) -> Option<Instant> {
        self.why.settled_at()
    }

    /// One of a few words, for the label of a metric.
    pub fn label(&self) -> &'static str {
        match &self.why {
            _ if self.outcome() == Outcome::Unknown => "unknown",
            Why::Conflict { .. } | Why::Exists => "conflict",
            Why::Gone | Why::Deleting => "gone",
            Why::Throttled { .. } => "throttled",
            Why::Unreadable(_) | Why::Decode(_) => "unreadable",
            Why::Refused { .. } | Why::Key | Why::Encode => "refused",
            Why::Call(_) | Why::Doubtful { .. } | Why::Open { .. } => "not_sent",
        }
    }
}

impl Why {
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Call(CallError::Timeout { .. } | CallError::Transport { .. })
            | Self::Doubtful { .. }
            | Self::Open { .. } => Outcome::Unknown,
            Self::Unreadable(_) => Outcome::Written,
            _ => Outcome::NotWritten,
        }
    }

    pub(crate) fn settled_at(&self) -> Option<Instant> {
        match self {
            Self::Call(error) => error.settled_at(),
            Self::Doubtful { settled_at, .. } | Self::Open { settled_at, .. } => *settled_at,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
