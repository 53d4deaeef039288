//! The raw limit: the PATCHes of a run sent by a bare loop, so that one can tell what of a
//! contender's time is its own and what is the server's.

use std::path::Path;

use anyhow::Context as _;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, StatusCode};
use ipnet::Ipv4Net;
use serde::Deserialize;

use crate::api::{Api, JSON, METADATA_ONLY, STRATEGIC_MERGE};
use crate::blocks::{MASK_SIZE, pool};
use crate::contender::{Identity, SERVICE_ACCOUNT};

/// The product's number of PATCHes in flight.
const IN_FLIGHT: usize = 64;

/// A PATCH that waits to be sent.
pub(crate) struct Patch {
    path: String,
    body: Bytes,
}

/// A connection with the identity that the contenders' PATCHes have. Replies are as short as those
/// the product asks for.
pub(crate) async fn connect(kubeconfig: &Path, identity: Identity) -> anyhow::Result<Api> {
    let api = Api::connect(kubeconfig).await?;
    let api = match identity {
        Identity::Admin => api,
        Identity::ControllerManager => {
            let token = service_account_token(&api).await?;
            Api::connect_with_token(kubeconfig, &token).await?
        }
    };
    Ok(api.accepting(METADATA_ONLY))
}

/// The token a controller manager gets with `--use-service-account-credentials`.
async fn service_account_token(api: &Api) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct TokenRequest {
        status: Status,
    }
    #[derive(Deserialize)]
    struct Status {
        token: String,
    }
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    let account = serde_json::json!({"metadata": {"name": SERVICE_ACCOUNT}}).to_string();
    api.call(Method::POST, accounts, Some((JSON, account.into())), &[StatusCode::CONFLICT]).await?;
    let request = serde_json::json!({"spec": {"expirationSeconds": 3600}}).to_string();
    let path = format!("{accounts}/{SERVICE_ACCOUNT}/token");
    let reply = api.call(Method::POST, &path, Some((JSON, request.into())), &[]).await?;
    let answer: TokenRequest = serde_json::from_slice(&reply).context("cannot read the token")?;
    Ok(answer.status.token)
}

/// One PATCH per Node, with the body that the product sends. Made before the clock is
/// read: what is measured is the sending.
pub(crate) fn patches<'a>(
    nodes: impl Iterator<Item = (&'a str, &'a str)>,
) -> anyhow::Result<Vec<Patch>> {
    let blocks = pool().subnets(MASK_SIZE)?;
    Ok(nodes.zip(blocks).map(|((uid, name), block)| patch(uid, name, block)).collect())
}

fn patch(uid: &str, name: &str, block: Ipv4Net) -> Patch {
    let body = format!(
        r#"{{"metadata":{{"uid":"{uid}"}},"spec":{{"podCIDR":"{block}","podCIDRs":["{block}"]}}}}"#
    );
    Patch { path: format!("/api/v1/nodes/{name}"), body: body.into() }
}

/// Sends them all.
pub(crate) async fn send(api: &Api, patches: Vec<Patch>) -> anyhow::Result<()> {
    stream::iter(patches)
        .map(|patch| async move {
            let body = Some((STRATEGIC_MERGE, patch.body));
            api.call(Method::PATCH, &patch.path, body, &[]).await
        })
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(|_| async { Ok(()) })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_names_the_uid_and_a_block_of_its_own() {
        let patches = patches([("u1", "n1"), ("u2", "n2")].into_iter()).unwrap();
        assert_eq!(patches[1].path, "/api/v1/nodes/n2");
        let body: serde_json::Value = serde_json::from_slice(&patches[1].body).unwrap();
        let spec = serde_json::json!({"podCIDR": "10.0.0.64/26", "podCIDRs": ["10.0.0.64/26"]});
        assert_eq!(body, serde_json::json!({"metadata": {"uid": "u2"}, "spec": spec}));
    }
}
