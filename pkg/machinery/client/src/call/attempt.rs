//! One attempt: its time limit, its metrics, and the verdict on its error. Stands below the
//! throttle, so that waiting for a token is no part of the limit, and above the credentials, so
//! that getting them is.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body as _;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};
use tower::{BoxError, Service, ServiceExt as _};
use tracing::trace;

use crate::call::error::CallError;
use crate::call::metrics::ClientMetrics;
use crate::call::progress::Progress;
use crate::call::request::{attempt_timeout, is_watch};
use crate::call::response_size::SizedBody;

/// Layer around what sends one request.
#[derive(Clone)]
pub(crate) struct Attempt<S> {
    inner: S,
    metrics: Arc<ClientMetrics>,
}

impl<S> Attempt<S> {
    pub(crate) fn new(inner: S, metrics: Arc<ClientMetrics>) -> Self {
        Self { inner, metrics }
    }
}

impl<S, B> Service<Request<Body>> for Attempt<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
{
    type Response = Response<SizedBody<B>>;
    type Error = CallError;
    type Future = BoxFuture<'static, Result<Self::Response, CallError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(attempt(self.inner.clone(), request, Arc::clone(&self.metrics)))
    }
}

async fn attempt<S, B>(
    inner: S,
    mut request: Request<Body>,
    metrics: Arc<ClientMetrics>,
) -> Result<Response<SizedBody<B>>, CallError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let method = request.method().clone();
    let watch = is_watch(&request);
    let url = tracing::enabled!(tracing::Level::TRACE).then(|| request.uri().clone());
    let started = Instant::now();
    let deadline = attempt_timeout(&request).map(|limit| started + limit);
    let progress = Arc::new(Progress::new(&request, deadline));
    request.extensions_mut().insert(Arc::clone(&progress));
    let request_size = request.body().size_hint().exact().unwrap_or_default();

    let sending = inner.oneshot(request);
    let outcome = match deadline {
        Some(deadline) => match timeout_at(deadline, sending).await {
            Ok(outcome) => outcome.map_err(|e| CallError::judge(e, &progress)),
            Err(_) => Err(CallError::timed_out(&progress)),
        },
        None => sending.await.map_err(|e| CallError::judge(e, &progress)),
    };

    let status = outcome.as_ref().map(Response::status);
    let latency = started.elapsed();
    metrics.attempt(&method, status.as_ref().ok().copied(), watch, request_size, latency);
    if matches!(status, Err(CallError::Fenced)) {
        metrics.fenced();
    }
    if let Some(url) = url {
        trace!(%method, %url, status = ?status, latency_ms = latency.as_millis(), "Request");
    }
    let size = (!watch).then(|| metrics.response_size(&method));
    let mut response = outcome?.map(|body| SizedBody::new(body, size));
    response.extensions_mut().insert(progress);
    Ok(response)
}

#[cfg(test)]
mod tests;
