//! The outermost layer: every request pays a token before it leaves, a watch does not, and a server
//! that refuses most of them by 429 stops the whole bucket (`rule:many-429s-stop-the-bucket`). Waits
//! inside `call`: kube polls readiness of all callers in one line, so that waiting there would let
//! one caller block the others.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::{Instant, timeout};
use tower::{Service, ServiceExt as _};
use transport::retry_after;

use crate::call::error::CallError;
use crate::call::metrics::ClientMetrics;
use crate::call::request::{WaitingSince, is_watch};
use crate::throttle::Throttle;
use crate::throttle::log::{LONG, WAIT_LOG, WaitLog, Waiting};

/// The server names the flow schema that judged a request in this header.
const FLOW_SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";

/// Layer around attempts; without a throttle it lets everything pass.
#[derive(Clone)]
pub(crate) struct Gate<S> {
    inner: S,
    throttle: Option<Throttle>,
    metrics: Arc<ClientMetrics>,
}

impl<S> Gate<S> {
    pub(crate) fn new(inner: S, throttle: Option<Throttle>, metrics: Arc<ClientMetrics>) -> Self {
        Self { inner, throttle, metrics }
    }
}

impl<S, B> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = CallError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<B>;
    type Error = CallError;
    type Future = BoxFuture<'static, Result<Response<B>, CallError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { inner, throttle, metrics } = self.clone();
        Box::pin(async move {
            if is_watch(&request) {
                return send(inner, request, throttle.as_ref(), &metrics).await;
            }
            let started = Instant::now();
            let method = request.method().clone();
            if let Some(throttle) = &throttle {
                let since = request.extensions().get().map_or(started, |WaitingSince(at)| *at);
                let waiting = Waiting { throttle, method: &method, url: request.uri() };
                metrics.limiter(&method, wait_for_token(waiting, since, &WAIT_LOG).await);
            }
            let outcome = send(inner, request, throttle.as_ref(), &metrics).await;
            metrics.request(&method, started.elapsed());
            outcome
        })
    }
}

/// Waits for a token, and tells of a long wait while it lasts and when it is over.
async fn wait_for_token(waiting: Waiting<'_>, since: Instant, log: &WaitLog) -> Duration {
    let mut acquiring = pin!(waiting.throttle.acquire(since));
    let wait = match timeout(LONG, &mut acquiring).await {
        Ok(wait) => wait,
        Err(_) => {
            log.goes_on(waiting);
            acquiring.await
        }
    };
    log.ended(waiting, &wait);
    wait.time
}

async fn send<S, B>(
    inner: S,
    request: Request<Body>,
    throttle: Option<&Throttle>,
    metrics: &ClientMetrics,
) -> Result<Response<B>, CallError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = CallError>,
{
    let response = inner.oneshot(request).await?;
    if let Some(throttle) = throttle {
        let refused = response.status() == StatusCode::TOO_MANY_REQUESTS;
        let most_are_refused = throttle.note_answer(refused);
        if refused {
            note_refusal(throttle, response.headers(), most_are_refused, metrics);
        }
    }
    Ok(response)
}

fn note_refusal(throttle: &Throttle, headers: &HeaderMap, stop: bool, metrics: &ClientMetrics) {
    let flow_schema = flow_schema(headers);
    metrics.server_throttled(flow_schema);
    if stop && let Some(pause) = retry_after(headers) {
        throttle.pause(pause, flow_schema);
    }
}

/// The UID of the flow schema that refused. It becomes a label, so what is no UID (something on the
/// way may write here what it likes) is one value: unknown.
fn flow_schema(headers: &HeaderMap) -> &str {
    let is_uid = |text: &&str| {
        (1..=36).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let given = headers.get(FLOW_SCHEMA).and_then(|value| value.to_str().ok());
    given.filter(is_uid).unwrap_or("unknown")
}

#[cfg(test)]
mod tests;
