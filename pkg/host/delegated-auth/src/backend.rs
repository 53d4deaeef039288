//! One review: the request, how it is repeated, and what the log says of failures.

use std::time::Duration;

use client::{AnswerError, Caller};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use kube::client::Body;
use resilience::{Backoff, Jitter, LogGate};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::metrics::BackendMetrics;
use crate::reviews::ReviewFailure;

/// Limit of one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 5;
/// How often a failure is told while it lasts.
const REMINDER: Duration = Duration::from_secs(60);

/// A kind of reviews, for requests and messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) path: &'static str,
    /// What is done, for the log.
    pub(crate) task: &'static str,
    pub(crate) resource: &'static str,
    /// The flag with the identity that asks.
    pub(crate) flag: &'static str,
}

/// Creates reviews of one kind.
pub(crate) struct Backend {
    kind: Kind,
    caller: Caller,
    metrics: BackendMetrics,
    reminder: LogGate,
}

impl Backend {
    pub(crate) fn new(kind: Kind, caller: Caller, metrics: BackendMetrics) -> Self {
        Self { kind, caller, metrics, reminder: LogGate::new(REMINDER) }
    }

    /// What the server says of `review`; the log tells why there is no answer.
    pub(crate) async fn review<R: DeserializeOwned>(
        &self,
        review: &Value,
    ) -> Result<R, ReviewFailure> {
        // As the components of Kubernetes do it.
        let first = Duration::from_millis(500);
        let waits = Backoff { first, factor: 1.5, cap: TIMEOUT, jitter: Jitter::Above(0.2) };
        for earlier in 0..ATTEMPTS {
            match self.attempt(review).await {
                Ok(answer) => {
                    if self.reminder.reset() {
                        info!(logger = "delegation", "Can {} again", self.kind.task);
                    }
                    return Ok(answer);
                }
                Err(error) => {
                    self.report(&error);
                    if !error.may_pass() {
                        return Err(ReviewFailure::Refused);
                    }
                    if earlier + 1 == ATTEMPTS {
                        break;
                    }
                }
            }
            sleep(waits.delay(earlier)).await;
        }
        Err(ReviewFailure::Unreachable)
    }

    async fn attempt<R: DeserializeOwned>(&self, review: &Value) -> Result<R, AnswerError> {
        let request = Request::post(self.kind.path)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(review.to_string().into_bytes()))?;
        let begun = Instant::now();
        let answer = self.caller.answer(request, TIMEOUT).await;
        let status = answer.as_ref().ok().map(|answer| answer.status);
        self.metrics.count(status, begun.elapsed());
        answer?.decode()
    }

    fn report(&self, error: &AnswerError) {
        let Some(repeated) = self.reminder.pass(Instant::now()) else { return };
        let Kind { task, resource, flag, .. } = self.kind;
        let advice = match error {
            AnswerError::Refused { status: StatusCode::FORBIDDEN, .. } => format!(
                "the identity of {flag} may not create {resource}: bind it to the ClusterRole system:auth-delegator"
            ),
            AnswerError::Refused { status: StatusCode::UNAUTHORIZED, .. } => {
                format!("renew the credentials of {flag}")
            }
            _ if error.may_pass() => {
                "readers of /metrics that were allowed before are served for a while".to_owned()
            }
            _ => "requests that need a review are refused".to_owned(),
        };
        warn!(logger = "delegation", err = %error, repeated, "Cannot {task}; {advice}");
    }
}

#[cfg(test)]
mod tests;
