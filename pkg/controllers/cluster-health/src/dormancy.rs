//! Whether there is anything to watch over: while none of its kinds is served the controller waits
//! for one and costs the process nothing else (`rule:dormant-costs-nothing`).

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::{Request, StatusCode};
use kube::client::Body;
use manager::{Context, Failure, Permission};
use model::{Kind, Resource};
use serde::Deserialize;

/// Limit of one question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A kind of member clusters that may come to be served.
#[derive(Clone)]
pub(crate) struct Awaited {
    pub(crate) kind: Resource,
    /// Where its objects are; `None` for everywhere.
    pub(crate) namespace: Option<String>,
    /// What is needed once it is served.
    pub(crate) rights: &'static [Permission],
}

impl Awaited {
    async fn served(&self, context: &Context) {
        context.informers.until_served(Kind::Custom(self.kind.clone())).await;
    }
}

/// Waits until one of these kinds is served, and for us.
pub(crate) async fn served(context: &Context, kinds: &[Awaited]) {
    let waits = kinds.iter().map(|kind| kind.served(context));
    // One flavour at least was asked for.
    let mut waits: FuturesUnordered<_> = waits.collect();
    waits.next().await;
}

/// Has the rights for each kind checked from the moment on at which that is served.
pub(crate) fn check_rights(context: &Context, kinds: &[Awaited]) {
    for kind in kinds.iter().cloned() {
        let this = context.clone();
        context.spawn(async move {
            if this.stop.run_until_cancelled(kind.served(&this)).await.is_some() {
                this.needs(kind.rights);
            }
        });
    }
}

/// Whether there is an object of one of these kinds, whose status a leader before this one may be
/// writing yet.
pub(crate) async fn is_any_there(
    client: &kube::Client,
    kinds: &[Awaited],
) -> Result<bool, Failure> {
    for Awaited { kind, namespace, .. } in kinds {
        let Resource { group, version, plural, .. } = kind;
        // Everybody may ask this, and only of a kind that is served one needs rights.
        let Some(served) = read::<Served>(client, &format!("/apis/{group}/{version}")).await?
        else {
            continue;
        };
        if !served.resources.iter().any(|resource| resource.name == **plural) {
            continue;
        }
        let collection = kind.collection_path(namespace.as_deref());
        let listed = read::<Listed>(client, &format!("{collection}?limit=1")).await?;
        if listed.is_some_and(|listed| !listed.items.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `None` for what is not there, or not shown to us, and then was not to a predecessor.
async fn read<T: for<'de> Deserialize<'de>>(
    client: &kube::Client,
    path: &str,
) -> Result<Option<T>, Failure> {
    let request = Request::get(path).body(Body::empty()).map_err(Failure::new)?;
    let answer = client::answer(client, request, TIMEOUT).await.map_err(Failure::new)?;
    match answer.status {
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => Ok(None),
        status if status.is_success() => {
            serde_json::from_slice(&answer.body).map(Some).map_err(Failure::new)
        }
        status => Err(Failure::new(format!("cannot ask for member clusters: HTTP {status}"))),
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
