//! The outermost layer: every request except a watch takes a token before it leaves, long waits are
//! logged, and a server that refuses most requests by 429 stops the whole bucket
//! (`rule:many-429s-stop-the-bucket`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use kube::client::Body;
use resilience::LogGate;
use tokio::time::{Instant, timeout};
use tracing::info;
use transport::retry_after;

use crate::call::CallError;
use crate::call::metrics::ClientMetrics;
use crate::call::request::{Sender, WaitingSince, is_watch};
use crate::throttle::{Throttle, Wait};

/// The server names the flow schema that judged a request in this header.
const FLOW_SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";

/// Layer around attempts; without a throttle it lets everything pass.
pub(crate) struct ThrottleLayer<S> {
    inner: S,
    throttle: Option<Throttle>,
    metrics: Arc<ClientMetrics>,
}

impl<S> ThrottleLayer<S> {
    pub(crate) fn new(inner: S, throttle: Option<Throttle>, metrics: Arc<ClientMetrics>) -> Self {
        Self { inner, throttle, metrics }
    }

    /// Sends a request and notes whether it was refused by 429.
    async fn attempt(&self, request: Request<Body>) -> Result<Response<S::Answer>, CallError>
    where
        S: Sender<Error = CallError>,
    {
        let Some(throttle) = &self.throttle else { return self.inner.send(request).await };
        let number = throttle.note_sent();
        let answer = self.inner.send(request).await?;
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            let most_are_refused = throttle.note_refused(number);
            note_refusal(throttle, answer.headers(), most_are_refused, &self.metrics);
        }
        Ok(answer)
    }
}

impl<S: Sender<Error = CallError>> Sender for ThrottleLayer<S> {
    type Answer = S::Answer;
    type Error = CallError;

    async fn send(&self, request: Request<Body>) -> Result<Response<S::Answer>, CallError> {
        if is_watch(&request) {
            return self.attempt(request).await;
        }
        let started = Instant::now();
        let method = request.method().clone();
        if let Some(throttle) = &self.throttle {
            let since = request.extensions().get().map_or(started, |WaitingSince(at)| *at);
            let waiting = Waiting { throttle, method: &method, url: request.uri() };
            self.metrics.limiter(&method, wait_for_token(waiting, since, &WAIT_LOG).await);
        }
        let outcome = self.attempt(request).await;
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

/// Shorter waits are no news at any verbosity.
const NOTABLE: Duration = Duration::from_millis(50);
/// Longer ones are shown to an operator who did not ask.
pub(crate) const LONG: Duration = Duration::from_secs(1);

/// The lines' rate is the process's, not a client's.
pub(crate) static WAIT_LOG: WaitLog = WaitLog::new();

/// Writes the lines and keeps their rate.
pub(crate) struct WaitLog {
    begun: LogGate,
    always: LogGate,
    verbose: LogGate,
}

/// The request that waits.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'a> {
    pub(crate) throttle: &'a Throttle,
    pub(crate) method: &'a Method,
    pub(crate) url: &'a Uri,
}

/// tracing fixes a line's verbosity where it is written, so the three lines differ in `v` alone.
macro_rules! log_wait {
    ($waiting:expr, $wait:expr $(, v = $v:literal)?) => {
        info!(
            $(v = $v,)?
            delay = ?$wait.time,
            reason = %reason($wait.stopped_by.as_deref()),
            verb = %$waiting.method,
            URL = %$waiting.url,
            client = $waiting.throttle.name(),
            qps = $waiting.throttle.qps(),
            queue = $wait.queue,
            "Waited before sending request"
        )
    };
}

impl WaitLog {
    pub(crate) const fn new() -> Self {
        Self {
            begun: LogGate::new(Duration::from_secs(10)),
            always: LogGate::new(Duration::from_secs(10)),
            verbose: LogGate::new(Duration::from_secs(1)),
        }
    }

    /// Tells of a wait that has become long and goes on. `LONG` after its beginning, since a
    /// controller that stands still must be explained while it does.
    pub(crate) fn goes_on(&self, waiting: Waiting<'_>) {
        if self.begun.pass(Instant::now()).is_none() {
            return;
        }
        let pause = waiting.throttle.paused();
        let schema = pause.as_ref().map(|(_, flow_schema)| &**flow_schema);
        info!(
            left = pause.as_ref().map(|(left, _)| tracing::field::debug(*left)),
            reason = %reason(schema),
            verb = %waiting.method,
            URL = %waiting.url,
            client = waiting.throttle.name(),
            qps = waiting.throttle.qps(),
            "Waiting before sending request"
        );
    }

    /// Logs a wait that is over, if it was long enough and the last message is long enough ago.
    pub(crate) fn ended(&self, waiting: Waiting<'_>, wait: &Wait) {
        if wait.time <= NOTABLE {
            return;
        }
        let now = Instant::now();
        if wait.time > LONG && self.always.pass(now).is_some() {
            log_wait!(waiting, wait);
        } else if wait.time > LONG && self.verbose.pass(now).is_some() {
            log_wait!(waiting, wait, v = 2);
        } else {
            log_wait!(waiting, wait, v = 3);
        }
    }
}

fn reason(stopped_by: Option<&str>) -> String {
    match stopped_by {
        None => "client-side throttling, not priority and fairness".to_owned(),
        Some(uid) => {
            format!("server-side throttling (429 with Retry-After), FlowSchema UID: {uid:?}")
        }
    }
}

#[cfg(test)]
mod tests;
