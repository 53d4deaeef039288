//! TokenReviews and SubjectAccessReviews: the requests, their retries, and the log lines about failures.

use std::str::Utf8Error;
use std::sync::Arc;
use std::time::Duration;

use client::{AnswerError, Caller};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode};
use kube::client::Body;
use resilience::{Backoff, Jitter, LogGate};
use ring::hmac;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::metrics::BackendMetrics;
use crate::reviews::{Answer, Asking, Key, ReviewAnswer, ReviewFailure, Reviewed, Reviews};
use crate::user::User;

/// Limit of one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 5;
/// The time between two log lines about a lasting failure.
const REMINDER: Duration = Duration::from_secs(60);

/// A kind of reviews, for requests and messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) path: &'static str,
    /// The task, for the log.
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

    /// The answer of the server to `review`. Logs the reason of a missing answer.
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
                "readers of /metrics that were authorized before are served during \
                 --authz-outage-grace"
                    .to_owned()
            }
            _ => "requests that need a review are refused".to_owned(),
        };
        warn!(logger = "delegation", err = %error, repeated, "Cannot {task}; {advice}");
    }
}

pub(crate) const TOKEN_REVIEWS: Kind = Kind {
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    task: "review bearer tokens",
    resource: "tokenreviews",
    flag: "--authentication-kubeconfig",
};

/// Finds the user of a token. A token is remembered only as a hash under a key that is drawn at start
/// and never leaves the process: a dump of the memory shows no token.
pub(crate) struct Tokens {
    backend: Arc<Backend>,
    reviews: Reviews<Arc<User>>,
    hash: hmac::Key,
}

impl Tokens {
    pub(crate) fn new(backend: Backend, reviews: Reviews<Arc<User>>, hash: hmac::Key) -> Self {
        Self { backend: Arc::new(backend), reviews, hash }
    }

    /// Whose `token` is.
    pub(crate) async fn ask(&self, token: &str, asking: Asking) -> Answer<Arc<User>> {
        let key = hashed(&self.hash, token.as_bytes());
        let (backend, token) = (Arc::clone(&self.backend), token.to_owned());
        self.reviews.ask(key, asking, || async move { review_token(&backend, &token).await }).await
    }
}

async fn review_token(backend: &Backend, token: &str) -> Reviewed<Arc<User>> {
    let question = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
    });
    let TokenReview { status } = backend.review(&question).await?;
    Ok(if status.authenticated && !status.user.name.is_empty() {
        ReviewAnswer::Granted(Arc::new(status.user.authenticated()))
    } else {
        ReviewAnswer::Refused
    })
}

#[derive(Deserialize)]
struct TokenReview {
    status: TokenStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: User,
}

/// The token that a request brings, as text where it is any: other schemes and an empty token are
/// no credentials, as in Kubernetes.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<Result<&str, Utf8Error>> {
    let mut words = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii().split(|byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    let is_token = scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty();
    is_token.then(|| str::from_utf8(token))
}

/// A question as a key of the memory.
pub(crate) fn hashed(hash: &hmac::Key, question: &[u8]) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(hmac::sign(hash, question).as_ref());
    key
}

pub(crate) const ACCESS_REVIEWS: Kind = Kind {
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    task: "review the access to paths",
    resource: "subjectaccessreviews",
    flag: "--authorization-kubeconfig",
};

/// Finds out whether a user may ask for a path.
pub(crate) struct AccessReviews {
    backend: Arc<Backend>,
    reviews: Reviews<()>,
    hash: hmac::Key,
}

impl AccessReviews {
    pub(crate) fn new(backend: Backend, reviews: Reviews<()>, hash: hmac::Key) -> Self {
        Self { backend: Arc::new(backend), reviews, hash }
    }

    /// Whether `user` may do this.
    pub(crate) async fn ask(
        &self,
        user: &User,
        method: &Method,
        path: &str,
        asking: Asking,
    ) -> Answer<()> {
        let question = question(user, method, path);
        let key = hashed(&self.hash, question.to_string().as_bytes());
        let backend = Arc::clone(&self.backend);
        self.reviews
            .ask(key, asking, || async move { review_access(&backend, &question).await })
            .await
    }
}

async fn review_access(backend: &Backend, question: &Value) -> Reviewed<()> {
    let AccessReview { status } = backend.review(question).await?;
    Ok(if status.allowed { ReviewAnswer::Granted(()) } else { ReviewAnswer::Refused })
}

fn question(user: &User, method: &Method, path: &str) -> Value {
    let mut spec = json!(user);
    let verb = method.as_str().to_lowercase();
    spec["nonResourceAttributes"] = json!({"path": path, "verb": verb});
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
    })
}

#[derive(Deserialize)]
struct AccessReview {
    status: AccessStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessStatus {
    allowed: bool,
}

#[cfg(test)]
mod tests;
