//! One raw request and its whole answer, for callers that decide by status code and must know
//! whether a write happened: node-ipam's PATCH and the token request.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};

use crate::call_error::CallError;
use crate::request::{AttemptStarted, AttemptTimeout, retry_after};

/// What the server answered, whatever the status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status code.
    pub status: StatusCode,
    /// `Retry-After` in seconds, when the server gave one.
    pub retry_after: Option<Duration>,
    /// The whole body.
    pub body: Bytes,
}

/// Sends `req` and reads the whole answer. Any HTTP status is an answer. `timeout` bounds one
/// attempt, reading the body included; waiting in the throttle is no part of it. `client` must come
/// from [`Clients`](crate::Clients): the limit is kept by its layers.
///
/// # Errors
/// [`CallError`] says whether the request may have been carried out. One whose answer broke off
/// after the headers may have been: it is a [`CallError::Transport`] or [`CallError::Timeout`].
pub async fn answer(
    client: &kube::Client,
    mut req: Request<Body>,
    timeout: Duration,
) -> Result<Answer, CallError> {
    req.extensions_mut().insert(AttemptTimeout(timeout));
    let response = client.send(req).await.map_err(CallError::from_kube)?;
    let started = response.extensions().get().map_or_else(Instant::now, |s: &AttemptStarted| s.0);
    let (parts, body) = response.into_parts();
    let body = timeout_at(started + timeout, body.collect())
        .await
        .map_err(|_| CallError::Timeout)?
        .map_err(CallError::from_kube_body)?
        .to_bytes();
    Ok(Answer { status: parts.status, retry_after: retry_after(&parts.headers), body })
}

impl CallError {
    /// The headers have arrived, so the request has left.
    fn from_kube_body(error: kube::Error) -> Self {
        Self::Transport(Box::new(error))
    }
}

#[cfg(test)]
mod tests;
