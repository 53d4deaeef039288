//! The two calls that node-ipam makes: the PATCH and the consistent read of one Node.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Answer, CallError, SendCheck};
use http::{Method, Request, StatusCode, header};
use kube::client::Body;
use model::Node;
use serde::Deserialize;

/// Only the metadata of the patched Node comes back: the reply is not used, and this halves it.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Sends the calls as the controller's identity.
#[derive(Clone)]
pub struct NodeApi {
    client: kube::Client,
    /// Bounds one PATCH (`node-ipam.md` 1.2).
    patch_timeout: Duration,
}

/// What a consistent read of a name found.
#[derive(Debug)]
pub enum Read {
    /// A Node of that name.
    Found(Node),
    /// No Node of that name.
    Absent,
}

impl NodeApi {
    /// A client whose PATCHes are given up after `patch_timeout`.
    pub fn new(client: kube::Client, patch_timeout: Duration) -> Self {
        Self { client, patch_timeout }
    }

    /// Sends the PATCH unless `check` says no at the last moment, which is after any wait for the
    /// client's throttle.
    pub async fn patch(
        &self,
        name: &str,
        body: Bytes,
        check: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Answer, CallError> {
        let mut request = Request::builder()
            .method(Method::PATCH)
            .uri(path(name))
            .header(header::CONTENT_TYPE, "application/strategic-merge-patch+json")
            .header(header::ACCEPT, METADATA_ONLY)
            .body(Body::from(body))
            .map_err(|error| CallError::NotSent(Box::new(error)))?;
        request.extensions_mut().insert("patch");
        request.extensions_mut().insert(SendCheck(Arc::new(check)));
        client::answer(&self.client, request, self.patch_timeout).await
    }

    /// Reads a Node with all writes that were answered before (no resourceVersion: a quorum
    /// read).
    ///
    /// # Errors
    /// The read failed or was refused; nothing is known.
    pub async fn read(&self, name: &str) -> Result<Read, ReadError> {
        let mut request = Request::builder()
            .method(Method::GET)
            .uri(path(name))
            .header(header::ACCEPT, "application/json")
            .body(Body::empty())
            .map_err(|error| CallError::NotSent(Box::new(error)))?;
        request.extensions_mut().insert("get");
        let answer = client::answer(&self.client, request, self.patch_timeout).await?;
        match answer.status {
            StatusCode::OK => Ok(Read::Found(serde_json::from_slice(&answer.body)?)),
            // Something on the way may answer 404 of its own, and to believe that would free a
            // live Node's block: only the API server's word counts.
            StatusCode::NOT_FOUND if says_not_found(&answer.body) => Ok(Read::Absent),
            status => Err(ReadError::Refused { status, pause: answer.retry_after }),
        }
    }
}

/// Why a consistent read gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No HTTP answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Another status than 200 and 404.
    #[error("cannot read the Node: the server answered {status}{}", hint(*status))]
    Refused {
        /// The answer's status.
        status: StatusCode,
        /// What `Retry-After` said.
        pause: Option<Duration>,
    },
    /// The body is no Node.
    #[error("cannot decode the Node: {0}")]
    Decode(#[from] serde_json::Error),
}

fn says_not_found(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Status {
        kind: String,
        reason: String,
    }
    serde_json::from_slice(body)
        .is_ok_and(|Status { kind, reason }| kind == "Status" && reason == "NotFound")
}

fn hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => {
            "; run with --use-service-account-credentials=true or grant get and patch on nodes"
        }
        _ => "",
    }
}

/// Node names are DNS subdomains, so nothing in them needs escaping.
fn path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_api_servers_own_not_found_means_that_a_node_is_gone() {
        assert!(says_not_found(br#"{"kind":"Status","reason":"NotFound","code":404}"#));
        for other in [
            &b"404 page not found"[..],
            b"<html>Not Found</html>",
            b"",
            br#"{"kind":"Status","code":404}"#,
            br#"{"kind":"Status","reason":"Forbidden"}"#,
            br#"{"reason":"NotFound"}"#,
        ] {
            assert!(!says_not_found(other), "{}", String::from_utf8_lossy(other));
        }
    }
}
