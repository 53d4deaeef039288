//! The outermost layer: every request pays a token before it leaves, a watch does not, and a server
//! that refuses most of them by 429 stops the whole bucket (`rule:many-429s-stop-the-bucket`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::{Instant, timeout};
use transport::retry_after;

use crate::call::error::CallError;
use crate::call::metrics::ClientMetrics;
use crate::call::request::{WaitingSince, is_watch};
use crate::call::sender::Sender;
use crate::throttle::Throttle;
use crate::throttle::log::{LONG, WAIT_LOG, WaitLog, Waiting};

/// The server names the flow schema that judged a request in this header.
const FLOW_SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";

/// Layer around attempts; without a throttle it lets everything pass.
pub(crate) struct Gate<S> {
    inner: S,
    throttle: Option<Throttle>,
    metrics: Arc<ClientMetrics>,
}

impl<S> Gate<S> {
    pub(crate) fn new(inner: S, throttle: Option<Throttle>, metrics: Arc<ClientMetrics>) -> Self {
        Self { inner, throttle, metrics }
    }

    fn note<B>(&self, answer: &Response<B>) {
        let Some(throttle) = &self.throttle else { return };
        let refused = answer.status() == StatusCode::TOO_MANY_REQUESTS;
        let most_are_refused = throttle.note_answer(refused);
        if refused {
            note_refusal(throttle, answer.headers(), most_are_refused, &self.metrics);
        }
    }
}

impl<S: Sender<Error = CallError>> Sender for Gate<S> {
    type Answer = S::Answer;
    type Error = CallError;

    async fn send(&self, request: Request<Body>) -> Result<Response<S::Answer>, CallError> {
        if is_watch(&request) {
            return self.inner.send(request).await.inspect(|answer| self.note(answer));
        }
        let started = Instant::now();
        let method = request.method().clone();
        if let Some(throttle) = &self.throttle {
            let since = request.extensions().get().map_or(started, |WaitingSince(at)| *at);
            let waiting = Waiting { throttle, method: &method, url: request.uri() };
            self.metrics.limiter(&method, wait_for_token(waiting, since, &WAIT_LOG).await);
        }
        let outcome = self.inner.send(request).await.inspect(|answer| self.note(answer));
        self.metrics.request(&method, started.elapsed());
        outcome
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
