//! Whether a leader before this one may still be giving out blocks, for a cluster without a
//! leader's Lease: only where no Node has a pod CIDR is it certain that none is.

use std::time::Duration;

use client::{Answer, CallError};
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode};
use kube::client::Body;
use manager::Failure;
use serde::Deserialize;
use transport::Status;

/// Nodes of one page; the first one usually answers.
const PAGE: usize = 500;
/// For one page, to its last byte.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Item>,
}

#[derive(Deserialize, Default)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize, Default)]
struct Spec {
    #[serde(default, rename = "podCIDR")]
    pod_cidr: String,
    #[serde(default, rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
}

/// Whether any Node has a pod CIDR, by a consistent list that ends at the first such page.
pub(crate) fn has_assigned(client: kube::Client) -> BoxFuture<'static, Result<bool, Failure>> {
    Box::pin(async move {
        let mut from = String::new();
        loop {
            let page = page(&client, &from).await.map_err(|error| {
                Failure::new(format!("cannot list the Nodes that have a pod CIDR: {error}"))
            })?;
            if page.items.iter().any(has_cidr) {
                return Ok(true);
            }
            if page.metadata.next.is_empty() {
                return Ok(false);
            }
            from = page.metadata.next;
        }
    })
}

fn has_cidr(node: &Item) -> bool {
    !node.spec.pod_cidr.is_empty() || !node.spec.pod_cidrs.is_empty()
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the server answered {status}: {message}")]
    Refused { status: StatusCode, message: String },
    #[error("cannot decode the list: {0}")]
    Decode(#[from] serde_json::Error),
}

async fn page(client: &kube::Client, from: &str) -> Result<Page, PageError> {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("limit", &PAGE.to_string())
        .extend_pairs((!from.is_empty()).then_some(("continue", from)))
        .finish();
    let request = Request::builder().method(Method::GET).uri(format!("/api/v1/nodes?{query}"));
    let mut request =
        request.body(Body::empty()).map_err(|error| CallError::NotSent(Box::new(error)))?;
    request.extensions_mut().insert("list");
    let Answer { status, body, .. } = client::answer(client, request, LIMIT).await?;
    if status != StatusCode::OK {
        let message = Status::read(&body).unwrap_or_default().message;
        return Err(PageError::Refused { status, message });
    }
    Ok(serde_json::from_slice(&body)?)
}

#[cfg(test)]
mod tests;
