//! The Nodes of a run: made as a kubelet registers itself or as they are after months, and removed
//! again.

use std::time::Duration;

use anyhow::Context as _;
use api_server_double::{NodeSize, manifest};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::api::{Api, JSON, STRATEGIC_MERGE};
use crate::cluster_cidrs::Label;

/// Maximum of requests in flight, which keeps two cores of API server busy; more requests would
/// only wait there.
const IN_FLIGHT: usize = 64;

/// Creates one Node with these labels and the labels of every Node; returns its size as the
/// server sends it.
pub(crate) async fn create(
    api: &Api,
    name: &str,
    size: NodeSize,
    labels: &[Label],
) -> anyhow::Result<usize> {
    let mut node = manifest(size, name);
    for (key, value) in labels {
        node["metadata"]["labels"][key] = Value::from(value.as_str());
    }
    let mut status = Value::Null;
    if size == NodeSize::Grown {
        // As a kubelet does. The server keeps no managedFields of a status that comes with the Node.
        status = node["status"].take();
    }
    let body = Bytes::from(node.to_string());
    let created = api.call(Method::POST, "/api/v1/nodes", Some((JSON, body)), &[]).await?;
    if status.is_null() {
        return Ok(created.len());
    }
    let body = Bytes::from(json!({"status": status}).to_string());
    let path = format!("/api/v1/nodes/{name}/status");
    Ok(api.call(Method::PATCH, &path, Some((STRATEGIC_MERGE, body)), &[]).await?.len())
}

/// Creates all of them as fast as the server takes them.
pub(crate) async fn create_all(
    api: &Api,
    names: &[String],
    size: NodeSize,
    labels: impl Fn(usize) -> Vec<Label>,
) -> anyhow::Result<()> {
    let labelled = names.iter().enumerate().map(|(number, name)| (name, labels(number)));
    stream::iter(labelled)
        .map(|(name, labels)| async move { create(api, name, size, &labels).await })
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// Creates `rate` Nodes a second, each at its own moment whatever became of those before it: a
/// schedule that waits for answers would hide the very delays it is there to show.
pub(crate) async fn create_on_schedule(
    api: &Api,
    names: &[String],
    size: NodeSize,
    rate: u32,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut requests = JoinSet::new();
    for (number, name) in (0_u32..).zip(names) {
        tokio::time::sleep_until(start + Duration::from_secs(1) * number / rate).await;
        let (api, name) = (api.clone(), name.clone());
        requests.spawn(async move { create(&api, &name, size, &[]).await });
    }
    while let Some(outcome) = requests.join_next().await {
        outcome.context("a request panicked")??;
    }
    Ok(())
}

/// Deletes all of them; those already gone are fine.
pub(crate) async fn delete_all(api: &Api, names: &[String]) -> anyhow::Result<()> {
    stream::iter(names)
        .map(|name| async move {
            let path = format!("/api/v1/nodes/{name}");
            api.call(Method::DELETE, &path, None, &[StatusCode::NOT_FOUND]).await
        })
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(|_| async { Ok(()) })
        .await
}
