//! [`Awaited`]: kinds without which a controller has nothing to do. While none of them is served it
//! waits for one and costs the process nothing else.

use std::time::Duration;

use client::AnswerError;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::{Request, StatusCode};
use kube::client::Body;
use kube_api::{Kind, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::permissions::Permission;

/// Limit of one question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A kind that may come to be served.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The kind.
    pub kind: Resource,
    /// Owner that its CRD must have.
    pub crd: CrdOf,
    /// Where its objects are; `None` for everywhere.
    pub namespace: Option<String>,
    /// Rights that are needed once the kind is served.
    pub rights: Vec<Permission>,
}

/// Owner of a CRD, by its label `app.kubernetes.io/managed-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrdOf {
    /// Ours, or anybody's when the controller was asked for by name.
    Default,
    /// Ours.
    Us,
    /// Anybody's.
    Anybody,
}

impl Awaited {
    /// Waits until it is served.
    pub async fn served(&self, context: &Context) {
        let informers = match self.crd {
            CrdOf::Default => context.informers.clone(),
            CrdOf::Us => context.informers.of_our_crds(),
            CrdOf::Anybody => context.informers.of_any_owner(),
        };
        informers.until_served(Kind::Custom(self.kind.clone())).await;
    }
}

/// Waits until one of these kinds is served; there must be at least one kind.
pub async fn served(context: &Context, kinds: &[Awaited]) {
    let waits = kinds.iter().map(|kind| kind.served(context));
    let mut waits: FuturesUnordered<_> = waits.collect();
    waits.next().await;
}

/// Has the rights for each kind checked from the moment on at which that is served.
pub fn check_rights(context: &Context, kinds: &[Awaited]) {
    for kind in kinds.iter().cloned() {
        let this = context.clone();
        context.spawn(async move {
            if this.stop.run_until_cancelled(kind.served(&this)).await.is_some() {
                this.needs(&kind.rights);
            }
        });
    }
}

/// Whether there is an object of one of these kinds, whose status a leader before this one may be
/// writing yet.
///
/// # Errors
/// The server does not say.
pub async fn is_any_there(client: &kube::Client, kinds: &[Awaited]) -> Result<bool, AnswerError> {
    for Awaited { kind, namespace, .. } in kinds {
        // Only of a kind that is served one needs rights.
        if is_served(client, kind).await? {
            let collection = kind.collection_path(namespace.as_deref());
            let listed = read::<Listed>(client, &format!("{collection}?limit=1")).await?;
            if listed.is_some_and(|listed| !listed.items.is_empty()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a kind is served. Everybody may ask this.
///
/// # Errors
/// The server does not say.
pub async fn is_served(client: &kube::Client, kind: &Resource) -> Result<bool, AnswerError> {
    let path = format!("/apis/{}/{}", kind.group, kind.version);
    let served = read::<Served>(client, &path).await?;
    Ok(served.is_some_and(|it| it.resources.iter().any(|it| it.name == *kind.plural)))
}

/// `None` for what is not there, or not shown to us, and then was not to a predecessor.
async fn read<T: DeserializeOwned>(
    client: &kube::Client,
    path: &str,
) -> Result<Option<T>, AnswerError> {
    let request = Request::get(path).body(Body::empty())?;
    match client::answer(client, request, TIMEOUT).await?.decode() {
        Err(AnswerError::Refused {
            status: StatusCode::NOT_FOUND | StatusCode::FORBIDDEN, ..
        }) => Ok(None),
        other => other.map(Some),
    }
}

#[derive(Deserialize)]
struct Served {
    resources: Vec<ServedResource>,
}

#[derive(Deserialize)]
struct ServedResource {
    name: String,
}

#[derive(Deserialize)]
struct Listed {
    items: Vec<serde::de::IgnoredAny>,
}

#[cfg(test)]
mod tests;
