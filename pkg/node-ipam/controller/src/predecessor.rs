//! Whether a leader before this one may still be giving out blocks, for a cluster without a
//! leader's Lease: only where there is no Node is it certain that none is. Where no Node has a pod
//! CIDR yet, a leader whose Lease was deleted may be about to send the first ones, as long as its
//! fence is open.

use std::time::Duration;

use client::{Answer, CallError};
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode};
use kube::client::Body;
use kube_api::Status;
use manager::Failure;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// For the answer, to its last byte.
const LIMIT: Duration = Duration::from_secs(30);

/// A consistent list of one Node.
const ONE_NODE: &str = "/api/v1/nodes?limit=1";

#[derive(Deserialize)]
struct Page {
    items: Vec<IgnoredAny>,
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

/// Whether the cluster has a Node, by a consistent list.
pub(crate) fn has_nodes(client: kube::Client) -> BoxFuture<'static, Result<bool, Failure>> {
    Box::pin(async move {
        let listed = list(&client).await;
        let page = listed.map_err(|error| {
            Failure::new(format!("cannot list the Nodes of the cluster: {error}"))
        })?;
        Ok(!page.items.is_empty())
    })
}

async fn list(client: &kube::Client) -> Result<Page, PageError> {
    let request = Request::builder().method(Method::GET).uri(ONE_NODE);
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
