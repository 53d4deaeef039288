//! Bearer tokens, which the API server reviews.

use std::str::Utf8Error;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::hmac;
use serde::Deserialize;
use serde_json::json;

use crate::backend::{Backend, Kind};
use crate::memory::Key;
use crate::reviews::{Answer, Asking, Reviewed, Reviews, Verdict};
use crate::user::User;

pub(crate) const KIND: Kind = Kind {
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    task: "review bearer tokens",
    resource: "tokenreviews",
    flag: "--authentication-kubeconfig",
};

/// Finds out whose a token is (rule:tokens-are-kept-as-hashes).
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
        self.reviews.ask(key, asking, || async move { review(&backend, &token).await }).await
    }
}

async fn review(backend: &Backend, token: &str) -> Reviewed<Arc<User>> {
    let question = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
    });
    let TokenReview { status } = backend.review(&question).await?;
    Ok(if status.authenticated && !status.user.name.is_empty() {
        Verdict::Granted(Arc::new(status.user.authenticated()))
    } else {
        Verdict::Refused
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

#[cfg(test)]
mod tests;
