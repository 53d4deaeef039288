//! What a caller learns from the end of a request: the [`Answer`], whatever its status, or the
//! [`CallError`], which says whether the request was carried out and whether it may be repeated. Its
//! way there, outermost layer first: `gate`, `attempt`, `dispatch`.

pub(crate) mod attempt;
pub(crate) mod dispatch;
pub(crate) mod metrics;
pub(crate) mod request;
pub(crate) mod throttle_layer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{DATE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube_api::Status;
use resilience::Fenced;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;
use transport::{ErrorChain, WireError, retry_after, wipe};

use crate::call::request::{AttemptTimeout, Progress, Reach, Withdrawn};

pub use metrics::RequestMetrics;
pub use request::{SendCheck, TRAVEL, WaitingSince, applicable_for};

/// The answer of the server, whatever its status. Its printed form has no body: that may be a
/// Secret, or a token.
#[derive(Clone)]
pub struct Answer {
    /// Status code.
    pub status: StatusCode,
    /// `Retry-After`, when the server gave one; at most
    /// [`RETRY_AFTER_MAX`](transport::RETRY_AFTER_MAX).
    pub retry_after: Option<Duration>,
    /// `Date`, unread: what time it was for the server.
    pub date: Option<HeaderValue>,
    /// The whole body.
    pub body: Bytes,
    /// From when on the server no longer carries out the write, should this answer leave open
    /// whether it does (a 504, or one of something on the way); see [`CallError::settled_at`].
    /// `None` for a read.
    pub settled_at: Option<Instant>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("retry_after", &self.retry_after)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Sends a request through a client of kube and reads the whole answer, as [`Caller::answer`](crate::Caller::answer)
/// does. It must come from [`Clients`](crate::Clients): its layers keep the limits.
pub async fn answer(
    client: &kube::Client,
    mut request: Request<Body>,
    timeout: Duration,
) -> Result<Answer, CallError> {
    request.extensions_mut().insert(AttemptTimeout(timeout));
    read(client.send(request).await.map_err(CallError::from_kube)?, timeout).await
}

/// Reads the whole answer to a request whose attempt was given `timeout`.
pub(crate) async fn read<B>(response: Response<B>, timeout: Duration) -> Result<Answer, CallError>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let (mut parts, body) = response.into_parts();
    let progress = parts.extensions.get::<Arc<Progress>>();
    let deadline = progress.and_then(|p| p.deadline()).unwrap_or_else(|| Instant::now() + timeout);
    let settled_at = progress.and_then(|p| p.settled_at());
    // The headers have arrived, so the request has left.
    let body = timeout_at(deadline, collect(body))
        .await
        .map_err(|_| CallError::Timeout { settled_at })?
        .map_err(|error| CallError::Transport { source: error.into(), settled_at })?;
    let retry_after = retry_after(&parts.headers);
    let date = parts.headers.remove(DATE);
    Ok(Answer { status: parts.status, retry_after, date, body, settled_at })
}

/// All of a body; one that comes in one frame, as most do, is not copied. It may hold a secret: frames
/// are joined in one buffer of its final size, since one that grows leaves copies behind.
async fn collect<B: http_body::Body<Data = Bytes> + Unpin>(mut body: B) -> Result<Bytes, B::Error> {
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.extend(frame?.into_data().ok().filter(|data| !data.is_empty()));
    }
    if let [one] = &mut *frames {
        return Ok(std::mem::take(one));
    }
    let mut whole = BytesMut::with_capacity(frames.iter().map(Bytes::len).sum());
    for frame in frames {
        whole.extend_from_slice(&frame);
        wipe(frame);
    }
    Ok(whole.freeze())
}

/// Why something that was asked for is not known.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The request got no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server does not say.
    #[error("the API server answers {status}: {message}")]
    Refused {
        /// The answer's status.
        status: StatusCode,
        /// The message of the server; empty without one.
        message: String,
    },
    /// The answer is not what was asked for.
    #[error("cannot decode the answer: {0}")]
    Decode(#[from] serde_json::Error),
    /// The question cannot be put.
    #[error(transparent)]
    Request(#[from] http::Error),
}

impl AnswerError {
    /// Whether asking again may help.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Call(_) => true,
            Self::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Decode(_) | Self::Request(_) => false,
        }
    }
}

impl Answer {
    /// The object in the body.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, AnswerError> {
        if !self.status.is_success() {
            let said = Status::read(&self.body).unwrap_or_default();
            return Err(AnswerError::Refused { status: self.status, message: said.message });
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

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
mod tests;
