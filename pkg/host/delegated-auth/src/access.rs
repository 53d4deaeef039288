//! Rights to paths, which the API server reviews.

use std::sync::Arc;

use http::Method;
use ring::hmac;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::backend::{Backend, Kind};
use crate::reviews::{Answer, Asking, Reviewed, Reviews, Verdict};
use crate::tokens::hashed;
use crate::user::User;

pub(crate) const KIND: Kind = Kind {
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
        self.reviews.ask(key, asking, || async move { review(&backend, &question).await }).await
    }
}

async fn review(backend: &Backend, question: &Value) -> Reviewed<()> {
    let AccessReview { status } = backend.review(question).await?;
    Ok(if status.allowed { Verdict::Granted(()) } else { Verdict::Refused })
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
