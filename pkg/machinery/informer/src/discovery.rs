//! Where an API server serves a kind, as its discovery documents tell.

use std::borrow::Cow;

use http::header::ACCEPT;
use kube::Client;
use kube::client::Body;
use model::{Kind, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::encoding::Encoding;
use crate::fault::Fault;
use crate::stream;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: GroupVersion,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

/// Finds a kind, as it is known or in the version that the server prefers; `None` when it is not
/// served.
pub(crate) async fn find(client: &Client, kind: &Kind) -> Result<Option<Resource>, Fault> {
    let (group, version) = match kind {
        Kind::BuiltIn(resource) | Kind::Custom(resource) => (&resource.group, &resource.version),
        Kind::Named { group, .. } if group.is_empty() => (group, &Cow::Borrowed("v1")),
        Kind::Named { group, .. } => {
            match read::<Group>(client, &format!("/apis/{group}")).await? {
                Some(found) => (group, &Cow::Owned(found.preferred_version.version)),
                None => return Ok(None),
            }
        }
    };
    let path = match &**group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let Some(listed) = read::<Resources>(client, &path).await? else { return Ok(None) };
    // Subresources have the kind too.
    let mut collections = listed.resources.into_iter().filter(|found| !found.name.contains('/'));
    let found = collections.find(|found| match kind {
        Kind::BuiltIn(resource) | Kind::Custom(resource) => found.name == resource.plural,
        Kind::Named { kind, .. } => found.kind == *kind,
    });
    Ok(found.map(|found| Resource {
        group: group.clone(),
        version: version.clone(),
        kind: found.kind.into(),
        plural: found.name.into(),
        namespaced: found.namespaced,
    }))
}

/// `None` when the server does not know the path.
async fn read<V: DeserializeOwned>(client: &Client, path: &str) -> Result<Option<V>, Fault> {
    let request = http::Request::get(path).header(ACCEPT, "application/json").body(Body::empty())?;
    let body = match stream::fetch(client, request).await {
        Ok((_, body)) => body,
        Err(fault) if fault.is_not_found() => return Ok(None),
        Err(fault) => return Err(fault),
    };
    serde_json::from_slice(&body).map(Some).map_err(|cause| Fault::Undecodable {
        object: format!("the discovery document {path}"),
        encoding: Encoding::Json,
        cause: Box::new(cause),
    })
}

#[cfg(test)]
mod tests;
