//! Where an API server serves a kind, as its discovery documents tell.

use http::header::ACCEPT;
use kube::Client;
use kube::client::Body;
use kube_api::{Kind, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::fault::Fault;
use crate::request::Encoding;
use crate::stream;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: GroupVersion,
    /// All, the preferred one among them, in the order in which the server prefers them.
    #[serde(default)]
    versions: Vec<GroupVersion>,
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

/// Finds a kind, as it is known or in the version that the server prefers of those that have it;
/// `None` when it is not served.
pub(crate) async fn find(client: &Client, kind: &Kind) -> Result<Option<Resource>, Fault> {
    for version in versions(client, kind).await? {
        if let Some(found) = find_in(client, kind, &version).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Where to look, in order. The version that the server prefers of a group may lack the kind.
async fn versions(client: &Client, kind: &Kind) -> Result<Vec<String>, Fault> {
    let group = match kind {
        Kind::BuiltIn(resource) | Kind::Custom(resource) => {
            return Ok(vec![resource.version.to_string()]);
        }
        Kind::Named { group, .. } if group.is_empty() => return Ok(vec!["v1".to_owned()]),
        Kind::Named { group, .. } => group,
    };
    let Some(found) = read::<Group>(client, &format!("/apis/{group}")).await? else {
        return Ok(Vec::new());
    };
    let preferred = found.preferred_version.version;
    let others = found.versions.into_iter().map(|it| it.version).filter(|it| *it != preferred);
    let mut all: Vec<_> = others.collect();
    all.insert(0, preferred);
    Ok(all)
}

async fn find_in(client: &Client, kind: &Kind, version: &str) -> Result<Option<Resource>, Fault> {
    let group = kind.group();
    let path = match group {
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
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: found.kind.into(),
        plural: found.name.into(),
        namespaced: found.namespaced,
    }))
}

/// `None` when the server does not know the path.
async fn read<V: DeserializeOwned>(client: &Client, path: &str) -> Result<Option<V>, Fault> {
    let request = http::Request::get(path).header(ACCEPT, "application/json").body(Body::empty())?;
    let body = match stream::fetch(client, request, stream::LONGEST_PAGE).await {
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
