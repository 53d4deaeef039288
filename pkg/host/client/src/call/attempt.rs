//! One attempt: its time limit, its metrics, and the verdict on its error. Stands below the
//! throttle, so that waiting for a token is no part of the limit, and above the credentials, so
//! that getting them is.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::WARNING;
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use kube::client::Body;
use parking_lot::Mutex;
use prometheus::Histogram;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;
use tracing::{Level, debug, enabled, info};

use crate::call::CallError;
use crate::call::metrics::ClientMetrics;
use crate::call::request::{Progress, Sender, attempt_timeout, is_watch};

/// Layer around what sends one request.
pub(crate) struct AttemptLayer<S> {
    inner: S,
    metrics: Arc<ClientMetrics>,
}

impl<S> AttemptLayer<S> {
    pub(crate) fn new(inner: S, metrics: Arc<ClientMetrics>) -> Self {
        Self { inner, metrics }
    }
}

impl<S> Sender for AttemptLayer<S>
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

/// A body that reports its size when it is dropped.
pub(crate) struct SizedBody<B> {
    body: B,
    read: u64,
    /// `None` for a watch, which has no size.
    size: Option<Histogram>,
}

impl<B> SizedBody<B> {
    pub(crate) fn new(body: B, size: Option<Histogram>) -> Self {
        Self { body, read: 0, size }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for SizedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.read += data.len() as u64;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for SizedBody<B> {
    fn drop(&mut self) {
        if let Some(size) = &self.size {
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bytes")]
            size.observe(self.read as f64);
        }
    }
}

/// More different texts are not remembered, and then not told either: somebody writes what he
/// likes.
const KINDS: usize = 256;
/// More of one text is not told.
const LENGTH: usize = 1024;

/// The process's: several clients are warned of the same things.
pub(crate) static WARNINGS: ServerWarnings = ServerWarnings::new();

/// The warnings that were logged so far.
pub(crate) struct ServerWarnings(Mutex<BTreeSet<String>>);

impl ServerWarnings {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// Tells what is new in the headers of an answer.
    pub(crate) fn tell(&self, headers: &HeaderMap) {
        for value in headers.get_all(WARNING) {
            let Some(text) = value.to_str().ok().and_then(text) else { continue };
            if self.is_new(&text) {
                info!(v = 2, warning = %text, "The API server warns");
            }
        }
    }

    fn is_new(&self, text: &str) -> bool {
        let mut told = self.0.lock();
        told.len() < KINDS && told.insert(text.to_owned())
    }
}

/// The text inside `299 - "text"`, the only code that Kubernetes sends.
fn text(header: &str) -> Option<String> {
    let rest = header.trim().strip_prefix("299 ")?;
    let (_, quoted) = rest.split_once(" \"")?;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while text.len() < LENGTH {
        match characters.next()? {
            '"' => break,
            '\\' => text.push(characters.next()?),
            plain => text.push(plain),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests;
