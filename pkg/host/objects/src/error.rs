//! [`Error`]: why a call has no result, whether it may have been carried out, and how that is read from
//! the answer of the server. Pure.

use std::time::Duration;

use client::{Answer, CallError};
use http::StatusCode;
use kube_api::Status;
use serde_json::Value;
use tokio::time::Instant;

use crate::object::DecodeError;

/// State of a write that did not return an object.
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
    /// The operation.
    pub verb: &'static str,
    /// The plural and the key, as `widgets default/a`.
    pub object: String,
    /// The cause.
    pub why: Why,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// The request got no answer; the [`CallError`] says whether the request may have been carried out.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The answer leaves it open whether the request was carried out.
    #[error("the server answered {status} and may have applied the request")]
    Doubtful {
        /// The answer's status.
        status: StatusCode,
        /// See [`Error::settled_at`].
        settled_at: Option<Instant>,
    },
    /// The outcome of an earlier attempt is unknown.
    #[error("outcome of an earlier attempt is unknown; last error: {last}")]
    Open {
        /// How the last attempt ended.
        last: Box<Why>,
        /// See [`Error::settled_at`].
        settled_at: Option<Instant>,
    },
    /// Others change the object faster than it could be read and changed.
    #[error(
        "other writers changed the object {attempts} times in a row; the change is repeated later"
    )]
    Conflict {
        /// How often.
        attempts: u32,
    },
    /// Other field managers own fields of an apply without force. Paths as the server writes them, such as
    /// `.status.conditions[type="Ready"].status`.
    #[error("other field managers own {}", fields.join(", "))]
    Owned {
        /// The fields.
        fields: Vec<String>,
    },
    /// The object is gone; another may have its name.
    #[error("the object does not exist any more")]
    Gone,
    /// The object is being deleted, so the operation is not done any more.
    #[error("the object is being deleted")]
    Deleting,
    /// An object of this name exists already.
    #[error("an object of this name exists already")]
    Exists,
    /// The server has too much to do.
    #[error("the server asks for a later retry")]
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
    #[error("the server carried it out, but the answer cannot be decoded: {0}")]
    Unreadable(DecodeError),
    /// The object that was read is not of the kind's form.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The changed object cannot be written as JSON.
    #[error("the changed object cannot be written as JSON")]
    Encode,
    /// The key is not valid.
    #[error("the name is not a valid object name; correct the reference that contains it")]
    Key,
}

impl Error {
    /// State of the write.
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

    /// Whether the identity lacks the right.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.why, Why::Refused { status: StatusCode::FORBIDDEN, .. })
    }

    /// Value of a metric label, one of a fixed set.
    pub fn label(&self) -> &'static str {
        match &self.why {
            _ if self.outcome() == Outcome::Unknown => "unknown",
            Why::Conflict { .. } | Why::Owned { .. } | Why::Exists => "conflict",
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

/// Longest part of the server's words that is kept.
const MESSAGE: usize = 1024;

/// The JSON of a successful answer to a request about the object `name` of `plural`.
pub(crate) fn of_write(answer: &Answer, plural: &str, name: &str) -> Result<Value, Why> {
    if answer.status.is_success() {
        // Whatever answers so in anything but JSON is not the API server.
        return serde_json::from_slice(&answer.body).map_err(|_| doubtful(answer));
    }
    Err(match refusal(answer, plural, name) {
        // The server gave up waiting for the request, or failed in the middle of it.
        Why::Refused { status, .. } if !is_final(status) => doubtful(answer),
        why => why,
    })
}

/// The JSON of a successful answer to a read, whose outcome is never open.
pub(crate) fn of_read(answer: &Answer, plural: &str, name: &str) -> Result<Value, Why> {
    if answer.status == StatusCode::OK
        && let Ok(object) = serde_json::from_slice(&answer.body)
    {
        return Ok(object);
    }
    Err(refusal(answer, plural, name))
}

fn doubtful(answer: &Answer) -> Why {
    Why::Doubtful { status: answer.status, settled_at: answer.settled_at }
}

/// The server has decided, so that nothing happens any more.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
}

fn refusal(answer: &Answer, plural: &str, name: &str) -> Why {
    let said = Status::read(&answer.body).unwrap_or_default();
    match answer.status {
        StatusCode::NOT_FOUND if said.says_not_found(plural, name) => Why::Gone,
        StatusCode::CONFLICT if said.reason == "AlreadyExists" => Why::Exists,
        StatusCode::CONFLICT => match owned_fields(&said) {
            fields if fields.is_empty() => Why::Conflict { attempts: 1 },
            fields => Why::Owned { fields },
        },
        StatusCode::UNPROCESSABLE_ENTITY if names_uid(&said) => Why::Conflict { attempts: 1 },
        StatusCode::TOO_MANY_REQUESTS => Why::Throttled { retry_after: answer.retry_after },
        status => Why::Refused { status, message: message(&said, status) },
    }
}

/// The fields of an apply without force that other field managers own.
fn owned_fields(said: &Status) -> Vec<String> {
    let causes = said.details.causes.iter();
    let owned = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    owned.map(|cause| cause.field.clone()).collect()
}

/// The object of this name is another one than the one that the patch names.
fn names_uid(said: &Status) -> bool {
    said.details.causes.iter().any(|cause| cause.field == "metadata.uid")
}

fn message(said: &Status, status: StatusCode) -> String {
    if said.message.is_empty() {
        return status.canonical_reason().unwrap_or("no reason given").to_owned();
    }
    said.message.chars().take(MESSAGE).collect()
}

#[cfg(test)]
mod tests;
