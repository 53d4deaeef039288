//! The calls that node-ipam makes: PATCHes and the consistent read of one Node.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Answer, CallError, Caller, SendCheck, WaitingSince};
use http::{Request, StatusCode, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::client::Body;
use kube_api::{Node, Status};
use tokio::time::Instant;

use crate::Surveyed;

/// Asks for only the metadata of the patched Node: its UID is all that is read of the reply, and
/// this halves it.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Sends the calls as the controller's identity.
#[derive(Clone)]
pub(crate) struct NodeApi {
    caller: Caller,
    /// Bounds one PATCH here; the server is told the same.
    patch_timeout: Duration,
}

impl NodeApi {
    /// Calls through `caller` whose PATCHes are given up after `patch_timeout`.
    pub(crate) fn new(caller: impl Into<Caller>, patch_timeout: Duration) -> Self {
        Self { caller: caller.into(), patch_timeout }
    }

    /// How long after its start the server may apply a PATCH at the most: it can leave as late as
    /// our limit allows, and the server is given no longer than that again. What the manager waits
    /// for counts from a later moment, the end of our own wait, and is shorter by that.
    pub(crate) fn applicable_for(&self) -> Duration {
        self.patch_timeout + client::applicable_for(self.patch_timeout)
    }

    /// Sends the PATCH unless `check` says no at the last moment, which is after any wait for the
    /// client's throttle. There a Node goes first that waits since an earlier moment.
    pub(crate) async fn patch(
        &self,
        name: &str,
        body: Bytes,
        since: Instant,
        check: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Answer, CallError> {
        self.send(path(name), body, since, Some(SendCheck(Arc::new(check)))).await
    }

    /// Sends a PATCH of a Node's status.
    pub(crate) async fn patch_status(
        &self,
        name: &str,
        body: Bytes,
        since: Instant,
    ) -> Result<Answer, CallError> {
        self.send(format!("{}/status", path(name)), body, since, None).await
    }

    async fn send(
        &self,
        path: String,
        body: Bytes,
        since: Instant,
        check: Option<SendCheck>,
    ) -> Result<Answer, CallError> {
        let request = Request::patch(path)
            .header(header::CONTENT_TYPE, "application/strategic-merge-patch+json")
            .header(header::ACCEPT, METADATA_ONLY)
            .extension("patch");
        self.answer(request, Body::from(body), since, check).await
    }

    async fn answer(
        &self,
        request: http::request::Builder,
        body: Body,
        since: Instant,
        check: Option<SendCheck>,
    ) -> Result<Answer, CallError> {
        let request = request.extension(WaitingSince(since)).body(body);
        let mut request = request.map_err(|error| CallError::NotSent(Box::new(error)))?;
        if let Some(check) = check {
            request.extensions_mut().insert(check);
        }
        self.caller.answer(request, self.patch_timeout).await
    }

    /// Reads a Node with all writes that were answered before (no resourceVersion: a quorum
    /// read); `None` when the API server has no Node of that name.
    ///
    /// # Errors
    /// The read failed or was refused; nothing is known.
    pub(crate) async fn read(&self, name: &str, since: Instant) -> Result<Option<Node>, ReadError> {
        let answer = self.get(name, since).await?;
        match answer.status {
            StatusCode::OK => Ok(Some(serde_json::from_slice(&answer.body)?)),
            // Only the API server's own word about this very Node frees its block.
            StatusCode::NOT_FOUND if says_not_found(&answer.body, name) => Ok(None),
            status => Err(ReadError::Refused { status, pause: answer.retry_after }),
        }
    }

    /// Reads who set the pod CIDRs of a Node, and what time it is for the server.
    ///
    /// # Errors
    /// As [`Self::read`], and for a Node that is gone.
    pub(crate) async fn survey(
        &self,
        name: &str,
        since: Instant,
    ) -> Result<(Surveyed, Option<Timestamp>), ReadError> {
        let answer = self.get(name, since).await?;
        match answer.status {
            StatusCode::OK => Ok((serde_json::from_slice(&answer.body)?, date(&answer))),
            status => Err(ReadError::Refused { status, pause: answer.retry_after }),
        }
    }

    async fn get(&self, name: &str, since: Instant) -> Result<Answer, CallError> {
        let request = Request::get(path(name)).header(header::ACCEPT, "application/json");
        self.answer(request.extension("get"), Body::empty(), since, None).await
    }
}

fn date(answer: &Answer) -> Option<Timestamp> {
    let text = answer.date.as_ref()?.to_str().ok()?;
    Some(rfc2822::parse(text).ok()?.timestamp())
}

/// Why a consistent read gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The request got no HTTP answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The status is neither 200 nor 404.
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

fn says_not_found(body: &[u8], node: &str) -> bool {
    Status::read(body).is_some_and(|status| status.says_not_found("nodes", node))
}

fn hint(status: StatusCode) -> &'static str {
    let hint = "; run with --use-service-account-credentials=true or grant get and patch on nodes";
    if status == StatusCode::FORBIDDEN { hint } else { "" }
}

/// Node names are DNS subdomains, so nothing in them needs escaping.
fn path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_api_servers_own_word_about_the_node_means_that_it_is_gone() {
        let status = |kind: &str, reason: &str, of: &str, name: &str| {
            let details = json!({"kind": of, "name": name});
            json!({"kind": kind, "reason": reason, "details": details, "code": 404}).to_string()
        };
        assert!(says_not_found(status("Status", "NotFound", "nodes", "a").as_bytes(), "a"));
        for other in [
            status("Status", "NotFound", "nodes", "b"),
            status("Status", "NotFound", "pods", "a"),
            status("Status", "Forbidden", "nodes", "a"),
            status("Problem", "NotFound", "nodes", "a"),
            r#"{"kind":"Status","reason":"NotFound","code":404}"#.into(),
            r#"{"kind":"Status","reason":"NotFound","details":{},"code":404}"#.into(),
            r#"{"kind":"Status","code":404}"#.into(),
            "404 page not found".into(),
            "<html>Not Found</html>".into(),
            String::new(),
        ] {
            assert!(!says_not_found(other.as_bytes(), "a"), "{other}");
        }
    }
}
