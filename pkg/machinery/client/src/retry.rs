//! Repeats failed attempts by stock's rule (`host.md` 4.3), and measures the whole request. Each
//! attempt passes the throttle again, below. Off for clients whose writes may not be repeated
//! blindly; they decide by [`CallError`].
//!
//! | after | repeated |
//! |---|---|
//! | 429 or 5xx with `Retry-After` | any verb, after that many seconds |
//! | 429 without | reads, after 1 s |
//! | connection lost under way | reads, after 1 s |
//! | anything else | never |

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceExt as _};

use crate::call_error::CallError;
use crate::metrics::ClientMetrics;
use crate::request::{is_watch, retry_after};

/// Repetitions after the first attempt, as in stock.
const RETRIES_MAX: u32 = 10;
/// Where the server gives no time, as in stock.
const BACKOFF: Duration = Duration::from_secs(1);

/// Layer around gated attempts.
#[derive(Clone)]
pub(crate) struct Retry<S> {
    inner: S,
    enabled: bool,
    metrics: Arc<ClientMetrics>,
}

impl<S> Retry<S> {
    pub(crate) fn new(inner: S, enabled: bool, metrics: Arc<ClientMetrics>) -> Self {
        Self { inner, enabled, metrics }
    }
}

impl<S, B> Service<Request<Body>> for Retry<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = CallError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send,
{
    type Response = Response<B>;
    type Error = CallError;
    type Future = BoxFuture<'static, Result<Response<B>, CallError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let started = Instant::now();
            let method = request.method().clone();
            let watch = is_watch(&request);
            let outcome = if this.enabled {
                repeat(this.inner, request, &this.metrics).await
            } else {
                this.inner.oneshot(request).await
            };
            if !watch {
                this.metrics.request(&method, started.elapsed());
            }
            outcome
        })
    }
}

async fn repeat<S, B>(
    inner: S,
    mut request: Request<Body>,
    metrics: &ClientMetrics,
) -> Result<Response<B>, CallError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = CallError> + Clone,
{
    let mut retries = 0;
    loop {
        let next = copy(&request);
        let method = request.method().clone();
        let outcome = inner.clone().oneshot(request).await;
        if retries > 0 {
            metrics.retried(&method, outcome.as_ref().ok().map(Response::status));
        }
        match (pause_before_retry(&method, &outcome), next) {
            (Some(pause), Some(next)) if retries < RETRIES_MAX => {
                // Gives the answer's stream back before the wait.
                drop(outcome);
                sleep(pause).await;
                request = next;
                retries += 1;
            }
            _ => return outcome,
        }
    }
}

/// How long to wait before the next attempt; `None` ends the request with this outcome.
fn pause_before_retry<B>(
    method: &Method,
    outcome: &Result<Response<B>, CallError>,
) -> Option<Duration> {
    let read = *method == Method::GET;
    match outcome {
        Ok(response) => {
            let status = response.status();
            let throttled = status == StatusCode::TOO_MANY_REQUESTS;
            match retry_after(response.headers()) {
                Some(pause) if throttled || status.is_server_error() => Some(pause),
                None if throttled && read => Some(BACKOFF),
                _ => None,
            }
        }
        Err(CallError::Transport(_)) if read => Some(BACKOFF),
        Err(_) => None,
    }
}

/// A second copy of `request`; `None` for a streamed body, which can be sent once.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

#[cfg(test)]
mod tests;
