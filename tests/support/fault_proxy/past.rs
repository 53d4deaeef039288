//! Answers from an earlier state, as an API server gives them whose cache lags behind.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::canned::json_response;
use super::matching::Request;
use super::upstream::Upstream;

/// A list as it was: [`super::FaultProxy::snapshot`].
#[derive(Debug, Clone)]
pub struct Past(Arc<Value>);

impl Past {
    pub(super) async fn take(upstream: &Upstream, path: &str) -> anyhow::Result<Self> {
        let response = upstream.get(path).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&body));
        let list: Value = serde_json::from_slice(&body)?;
        list["metadata"]["resourceVersion"].as_str().context("a list has a resourceVersion")?;
        Ok(Self(Arc::new(list)))
    }

    /// The resourceVersion of that state.
    pub fn resource_version(&self) -> &str {
        self.0["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    /// The answer to a plain list: all of it as one page.
    pub(super) fn list(&self) -> Response<Bytes> {
        json_response(&self.0)
    }

    /// The beginning of the answer to a watch with initial events.
    pub(super) fn initial_events(&self) -> VecDeque<Bytes> {
        let kind = self.0["kind"].as_str().unwrap_or_default().trim_end_matches("List");
        // Items of a list do without kind and apiVersion, objects of events do not.
        let complete = |mut object: Value| {
            object["kind"] = kind.into();
            object["apiVersion"] = self.0["apiVersion"].clone();
            object
        };
        let objects = self.0["items"].as_array().into_iter().flatten().cloned();
        let mark = json!({"metadata": {
            "resourceVersion": self.resource_version(),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }});
        objects
            .map(|object| json!({"type": "ADDED", "object": complete(object)}))
            .chain([json!({"type": "BOOKMARK", "object": complete(mark.clone())})])
            .map(|event| format!("{event}\n").into())
            .collect()
    }

    /// The request for the rest of such a watch: everything since then.
    pub(super) fn watch_since(&self, mut request: Request) -> Request {
        const REPLACED: [&str; 3] =
            ["resourceVersion", "resourceVersionMatch", "sendInitialEvents"];
        let kept = request.query.split('&').filter(|pair| {
            let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
            !REPLACED.contains(&name)
        });
        let since = format!("resourceVersion={}", self.resource_version());
        request.query = kept.chain([since.as_str()]).collect::<Vec<_>>().join("&");
        request
    }
}
