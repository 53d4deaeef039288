//! Gets a service account's token as stock does: look for the account, create it when absent, ask
//! for a token. All in the name of the root identity, through no bucket.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderValue, Method, Request, StatusCode, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::client::Body;
use kube_api::Status;
use resilience::wall_now;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tracing::info;
use transport::{sensitive_header, wipe};
use zeroize::Zeroize as _;

use crate::call::{Answer, answer};

/// Asked for; the server may give another.
const LIFE_SECONDS: u64 = 3600;
/// A shorter life is taken for a difference of clocks.
const LIFE_MIN: Duration = Duration::from_secs(600);
const TRIES: u32 = 4;
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Bounds each of the calls.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests tokens for one service account.
pub(crate) struct TokenRequester {
    root: kube::Client,
    namespace: String,
    name: String,
}

/// One failed try, and whether the next may fare better.
struct Failure {
    reason: String,
    lasting: bool,
}

#[derive(Deserialize)]
struct TokenReply<'a> {
    #[serde(borrow)]
    status: TokenStatus<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenStatus<'a> {
    /// Part of the reply, unless it has escapes.
    #[serde(borrow)]
    token: Cow<'a, str>,
    expiration_timestamp: Time,
}

impl TokenRequester {
    pub(crate) fn new(root: kube::Client, namespace: &str, name: &str) -> Self {
        Self { root, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Tries four times, half a second apart at first, then twice as long each time. What
    /// permissions forbid is not tried again.
    pub(crate) async fn request(&self) -> Result<Token, TokenError> {
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            match self.try_once().await {
                Ok(token) => return Ok(token),
                Err(failure) if failure.lasting || tries == TRIES => {
                    return Err(self.error(failure.reason));
                }
                Err(_) => {}
            }
            sleep(pause).await;
            pause *= 2;
            tries += 1;
        }
    }

    /// An error that names this service account.
    pub(crate) fn error(&self, reason: String) -> TokenError {
        TokenError { namespace: self.namespace.clone(), name: self.name.clone(), reason }
    }

    async fn try_once(&self) -> Result<Token, Failure> {
        self.ensure_account().await?;
        let obtained = Instant::now();
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFE_SECONDS},
        });
        let path = format!("{}/{}/token", self.accounts(), self.name);
        let reply = self.call(Method::POST, &path, Some(&body)).await?;
        if !reply.status.is_success() {
            return Err(refusal("request its token", "create serviceaccounts/token", &reply));
        }
        let token = token(&reply.body, obtained);
        wipe(reply.body);
        token
    }

    /// Creates the account unless it is there. Another replica may be faster (409); a missing
    /// namespace (404) is waited for by trying again, since the root identity may not create
    /// namespaces.
    async fn ensure_account(&self) -> Result<(), Failure> {
        let path = format!("{}/{}", self.accounts(), self.name);
        let found = self.call(Method::GET, &path, None).await?;
        if found.status.is_success() {
            return Ok(());
        }
        if found.status != StatusCode::NOT_FOUND {
            return Err(refusal("look for it", "get serviceaccounts", &found));
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": self.name, "namespace": self.namespace},
        });
        let created = self.call(Method::POST, &self.accounts(), Some(&body)).await?;
        match created.status {
            StatusCode::CONFLICT => {
                let found = self.call(Method::GET, &path, None).await?;
                if found.status.is_success() {
                    Ok(())
                } else {
                    Err(refusal("look for it again", "get serviceaccounts", &found))
                }
            }
            StatusCode::NOT_FOUND => {
                Err(Failure::passing(format!("namespace {:?} does not exist yet", self.namespace)))
            }
            status if status.is_success() => {
                info!(namespace = self.namespace, name = self.name, "Created service account");
                Ok(())
            }
            _ => Err(refusal("create it", "create serviceaccounts", &created)),
        }
    }

    fn accounts(&self) -> String {
        format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let body = body.map_or_else(Body::empty, |json| json.to_string().into_bytes().into());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|e| Failure { reason: e.to_string(), lasting: true })?;
        answer(&self.root, request, CALL_TIMEOUT).await.map_err(|e| Failure::passing(e.to_string()))
    }
}

/// The token of a reply.
fn token(reply: &[u8], obtained: Instant) -> Result<Token, Failure> {
    // The parser's error may quote the reply.
    let TokenReply { status } = serde_json::from_slice(reply).map_err(|error| {
        let at = format!("line {} column {}", error.line(), error.column());
        Failure::passing(format!("the API server's reply has no token ({at})"))
    })?;
    let header = sensitive_header(&["Bearer ", &status.token]);
    if let Cow::Owned(mut token) = status.token {
        token.zeroize();
    }
    let header = header
        .ok_or_else(|| Failure::passing("the token cannot be put into a header".to_owned()))?;
    Ok(Token { header, obtained, life: life(&status.expiration_timestamp, wall_now().into()) })
}

impl Failure {
    fn passing(reason: String) -> Self {
        Self { reason, lasting: false }
    }
}

/// Words for a status other than success, with the permission to grant where that is what is
/// missing.
fn refusal(what: &str, permission: &str, reply: &Answer) -> Failure {
    let status = reply.status;
    let message = Status::read(&reply.body).map(|status| status.message).unwrap_or_default();
    let lasting = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let hint = if lasting {
        format!("; allow the identity of --kubeconfig to {permission} there (RBAC)")
    } else {
        String::new()
    };
    Failure { reason: format!("cannot {what}: {status}: {message}{hint}"), lasting }
}

/// Life of a token that ends at `end`, counted from now.
fn life(end: &Time, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let end = Duration::from_secs(u64::try_from(end.0.as_second()).unwrap_or(0));
    end.saturating_sub(now).max(LIFE_MIN)
}

/// Why there is no token. Nothing was sent in the service account's name.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot get a token for service account {namespace}/{name}: {reason}")]
pub struct TokenError {
    /// Namespace of the service account.
    pub namespace: String,
    /// Name of the service account.
    pub name: String,
    /// The failed step, and the remedy.
    pub reason: String,
}

/// A token and the times that follow from its life.
#[derive(Clone)]
pub(crate) struct Token {
    /// The `Authorization` header, marked sensitive.
    pub(crate) header: HeaderValue,
    pub(crate) obtained: Instant,
    pub(crate) life: Duration,
}

#[cfg(test)]
mod tests {
    use memory_search::Mark;

    use super::*;

    /// A reply, as it comes from the wire.
    fn body(mark: &Mark) -> bytes::Bytes {
        let mut body = Vec::with_capacity(256);
        body.extend_from_slice(br#"{"status":{"token":""#);
        body.extend_from_slice(mark.secret().as_bytes());
        body.extend_from_slice(br#"","expirationTimestamp":"2126-01-01T00:00:00Z"}}"#);
        body.into()
    }

    #[tokio::test]
    async fn a_token_that_was_requested_and_dropped_is_nowhere_in_memory() {
        let mark = Mark::random();
        let mut token = body(&mark);
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_token = request.method() == Method::POST;
            let body = if is_token { std::mem::take(&mut token) } else { bytes::Bytes::new() };
            let reply = http::Response::new(http_body_util::Full::new(body));
            std::future::ready(Ok::<_, tower::BoxError>(reply))
        });
        let requester = TokenRequester::new(kube::Client::new(service, "default"), "a", "b");
        let token = requester.request().await.unwrap();
        assert!(token.header.is_sensitive() && mark.is_in_memory(), "it was read");
        drop((token, requester));
        assert!(!mark.is_in_memory());
    }

    #[test]
    fn an_invalid_token_is_reported_without_its_content() {
        let reply = br#"{"status":"hunter2"}"#;
        let reason = token(reply, Instant::now()).map(drop).unwrap_err().reason;
        assert!(reason.contains("has no token") && !reason.contains("hunter2"), "{reason}");
    }
}
