//! One raw request and its whole answer, for callers that decide by status code and must know
//! whether a write happened: node-ipam's PATCH and the token request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};
use transport::retry_after;

use crate::call::error::CallError;
use crate::call::progress::Progress;
use crate::call::request::AttemptTimeout;

/// What the server answered, whatever the status. Its printed form has no body: that may be a Secret,
/// or a token.
#[derive(Clone)]
pub struct Answer {
    /// Status code.
    pub status: StatusCode,
    /// `Retry-After`, when the server gave one; at most
    /// [`RETRY_AFTER_MAX`](transport::RETRY_AFTER_MAX).
    pub retry_after: Option<Duration>,
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

/// Sends `request` and reads the whole answer. Any HTTP status is an answer. `timeout` bounds one
/// attempt, reading the body included; waiting in the throttle is no part of it. A write tells the
/// server to give up when the attempt does, or when our lease ends if that is sooner. `client` must
/// come from [`Clients`](crate::Clients): its layers keep the limits.
///
/// # Errors
/// [`CallError`] says whether the request may have been carried out. One whose answer broke off
/// after the headers may have been: it is a [`CallError::Transport`] or [`CallError::Timeout`].
pub async fn answer(
    client: &kube::Client,
    mut request: Request<Body>,
    timeout: Duration,
) -> Result<Answer, CallError> {
    request.extensions_mut().insert(AttemptTimeout(timeout));
    let response = client.send(request).await.map_err(CallError::from_kube)?;
    let (parts, body) = response.into_parts();
    let progress = parts.extensions.get::<Arc<Progress>>();
    let deadline = progress.and_then(|p| p.deadline()).unwrap_or_else(|| Instant::now() + timeout);
    let settled_at = progress.and_then(|p| p.settled_at());
    // The headers have arrived, so the request has left.
    let body = timeout_at(deadline, body.collect())
        .await
        .map_err(|_| CallError::Timeout { settled_at })?
        .map_err(|error| CallError::Transport { source: Box::new(error), settled_at })?
        .to_bytes();
    let retry_after = retry_after(&parts.headers);
    Ok(Answer { status: parts.status, retry_after, body, settled_at })
}

#[cfg(test)]
mod tests;
