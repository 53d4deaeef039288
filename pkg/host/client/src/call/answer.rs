//! The whole answer to one raw request, for callers that decide by status code and must know
//! whether a write happened.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{DATE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube_api::Status;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;
use transport::{retry_after, wipe};

use crate::call::error::CallError;
use crate::call::request::{AttemptTimeout, Progress};

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

/// Like [`Caller::answer`](crate::Caller::answer), through a client of kube. It must come from
/// [`Clients`](crate::Clients): its layers keep the limits.
///
/// # Errors
/// As for a caller.
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
    ///
    /// # Errors
    /// The status is no success, or the body is no such object.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, AnswerError> {
        if !self.status.is_success() {
            let said = Status::read(&self.body).unwrap_or_default();
            return Err(AnswerError::Refused { status: self.status, message: said.message });
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

#[cfg(test)]
mod tests;
