//! Answers from an earlier state, as an API server gives them whose cache lags behind: read from
//! the server at that time, in both encodings.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::encoding::{Encoding, json_event};
use super::matching::Request;
use super::protobuf;
use super::upstream::Upstream;

/// A list as it was: [`super::FaultProxy::snapshot`].
#[derive(Debug, Clone)]
pub struct Past(Arc<Lists>);

#[derive(Debug)]
struct Lists {
    json: Value,
    protobuf: Bytes,
}

impl Past {
    pub(super) async fn take(upstream: &Upstream, path: &str) -> anyhow::Result<Self> {
        let json = read(upstream, path, String::new(), "application/json").await?;
        let json: Value = serde_json::from_slice(&json)?;
        let version = json["metadata"]["resourceVersion"].as_str();
        let version = version.context("a list has a resourceVersion")?;
        let same = format!("resourceVersion={version}&resourceVersionMatch=Exact");
        let protobuf = read(upstream, path, same, "application/vnd.kubernetes.protobuf").await?;
        Ok(Self(Arc::new(Lists { json, protobuf })))
    }

    /// The resourceVersion of that state.
    pub fn resource_version(&self) -> &str {
        self.0.json["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    /// The answer to a plain list: all of it as one page.
    pub(super) fn list(&self, encoding: Encoding) -> Response<Bytes> {
        encoding.response(match encoding {
            Encoding::Json => self.0.json.to_string().into(),
            Encoding::Protobuf => self.0.protobuf.clone(),
        })
    }

    /// The beginning of the answer to a watch with initial events.
    pub(super) fn initial_events(&self, encoding: Encoding) -> VecDeque<Bytes> {
        let text = |name: &str| self.0.json[name].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind").trim_end_matches("List"));
        match encoding {
            Encoding::Json => self.json_events(api_version, kind),
            Encoding::Protobuf => protobuf::items(&self.0.protobuf)
                .map(|item| protobuf::enveloped(api_version, kind, item))
                .map(|object| protobuf::watch_event("ADDED", &object))
                .chain([protobuf::end_of_initial_events(
                    api_version,
                    kind,
                    self.resource_version(),
                )])
                .collect(),
        }
    }

    fn json_events(&self, api_version: &str, kind: &str) -> VecDeque<Bytes> {
        // Items of a list do without kind and apiVersion, objects of events do not.
        let complete = |mut object: Value| {
            object["kind"] = kind.into();
            object["apiVersion"] = api_version.into();
            object
        };
        let objects = self.0.json["items"].as_array().into_iter().flatten().cloned();
        let mark = json!({"metadata": {
            "resourceVersion": self.resource_version(),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }});
        objects
            .map(|object| json_event("ADDED", &complete(object)))
            .chain([json_event("BOOKMARK", &complete(mark.clone()))])
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

async fn read(
    upstream: &Upstream,
    path: &str,
    query: String,
    accept: &'static str,
) -> anyhow::Result<Bytes> {
    let response = upstream.get(path, query, accept).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}
