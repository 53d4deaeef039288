//! Asks the server at start whether a controller may do what it is going to do, so that a missing
//! right is one clear line in the log instead of a refusal of every write (`host.md` 4.4).

use std::time::Duration;

use http::Request;
use kube::client::Body;
use prometheus::IntGauge;
use serde::Deserialize;
use serde_json::json;
use tracing::{debug, error};

const TIMEOUT: Duration = Duration::from_secs(10);

/// A right that a controller needs on a cluster-scoped resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// RBAC verb.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural name.
    pub resource: &'static str,
}

/// Who asks, for the log.
pub(crate) struct Subject {
    pub(crate) controller: &'static str,
    pub(crate) account: &'static str,
    pub(crate) by_account: bool,
}

/// Checks each right as the identity of `client`; counts and logs those that are missing.
pub(crate) async fn check(
    client: kube::Client,
    subject: Subject,
    needed: &'static [Permission],
    missing: IntGauge,
) {
    for permission in needed {
        match allowed(&client, *permission).await {
            Ok(true) => {}
            Ok(false) => {
                missing.inc();
                error!(
                    logger = subject.controller,
                    verb = permission.verb,
                    resource = permission.resource,
                    "{}",
                    cure(&subject)
                );
            }
            // The writes themselves will tell.
            Err(why) => debug!(logger = subject.controller, err = why, "Cannot check permissions"),
        }
    }
}

fn cure(subject: &Subject) -> String {
    let account = subject.account;
    if subject.by_account {
        format!(
            "Missing permission: service account kube-system/{account} may not do this; restore \
             the ClusterRole system:controller:{account} and its binding"
        )
    } else {
        format!(
            "Missing permission: the identity in --kubeconfig may not do this; run with \
             --use-service-account-credentials=true to act as kube-system/{account}, or grant it"
        )
    }
}

async fn allowed(client: &kube::Client, permission: Permission) -> Result<bool, String> {
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": permission.verb, "group": permission.group, "resource": permission.resource,
        }},
    });
    let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string().into_bytes()))
        .map_err(|error| error.to_string())?;
    let answer =
        client::answer(client, request, TIMEOUT).await.map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(format!("the server answered {}", answer.status));
    }
    let review: Review = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    Ok(review.status.allowed)
}

#[derive(Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Deserialize)]
struct ReviewStatus {
    allowed: bool,
}

#[cfg(test)]
mod tests;
