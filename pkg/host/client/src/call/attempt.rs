//! One attempt: its time limit, its metrics, and the verdict on its error. Stands below the
//! throttle, so that waiting for a token is no part of the limit, and above the credentials, so
//! that getting them is.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;
use tracing::{Level, debug, enabled};

use crate::call::error::CallError;
use crate::call::metrics::ClientMetrics;
use crate::call::progress::Progress;
use crate::call::request::{attempt_timeout, is_watch};
use crate::call::response_size::SizedBody;
use crate::call::sender::Sender;
use crate::call::warnings::WARNINGS;

/// Layer around what sends one request.
pub(crate) struct Attempt<S> {
    inner: S,
    metrics: Arc<ClientMetrics>,
}

impl<S> Attempt<S> {
    pub(crate) fn new(inner: S, metrics: Arc<ClientMetrics>) -> Self {
        Self { inner, metrics }
    }
}

impl<S> Sender for Attempt<S>
where
    S: Sender<Error = BoxError>,
    S::Answer: http_body::Body<Data = Bytes> + Unpin,
{
    type Answer = SizedBody<S::Answer>;
    type Error = CallError;

    async fn send(&self, mut request: Request<Body>) -> Result<Response<Self::Answer>, CallError> {
        let method = request.method().clone();
        let watch = is_watch(&request);
        let url = enabled!(Level::DEBUG).then(|| request.uri().clone());
        let started = Instant::now();
        let deadline = attempt_timeout(&request).map(|limit| started + limit);
        let progress = Arc::new(Progress::new(&request, deadline));
        request.extensions_mut().insert(Arc::clone(&progress));
        let request_size = request.body().size_hint().exact().unwrap_or_default();

        let sending = self.inner.send(request);
        let outcome = match deadline {
            Some(deadline) => match timeout_at(deadline, sending).await {
                Ok(outcome) => outcome.map_err(|e| CallError::judge(e, &progress)),
                Err(_) => Err(CallError::timed_out(&progress)),
            },
            None => sending.await.map_err(|e| CallError::judge(e, &progress)),
        };

        let status = outcome.as_ref().map(Response::status);
        let (metrics, latency) = (&self.metrics, started.elapsed());
        metrics.attempt(&method, status.as_ref().ok().copied(), watch, request_size, latency);
        if matches!(status, Err(CallError::Fenced)) {
            metrics.fenced();
        }
        if let Some(url) = url {
            let status =
                status.as_ref().map_or_else(ToString::to_string, |it| it.as_u16().to_string());
            let latency_ms = latency.as_millis();
            debug!(v = 6, %method, %url, status, latency_ms, "Request");
        }
        let size = (!watch).then(|| metrics.response_size(&method));
        let answer = outcome?;
        WARNINGS.tell(answer.headers());
        let mut response = answer.map(|body| SizedBody::new(body, size));
        response.extensions_mut().insert(progress);
        Ok(response)
    }
}

#[cfg(test)]
mod tests;
