//! Warns when no kube-controller-manager renews its lease for a minute: after a swap of the two programs
//! its other controllers run nowhere. Asks only with an identity that may read the lease, because a
//! refused request would be a line in the API server's audit log.

use std::time::Duration;

use client::AnswerError;
use http::Request;
use kube::client::Body;
use manager::{Permission, is_allowed};
use serde::Deserialize;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

/// Before the first look, and between the two: a lease that is held is renewed more often.
const WAIT: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(10);
const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";
const RIGHT: Permission = Permission::new("get", "coordination.k8s.io", "leases")
    .in_namespace("kube-system")
    .named("kube-controller-manager");

#[derive(Deserialize)]
struct Lease {
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    holder_identity: String,
    renew_time: String,
}

/// Looks twice, in its own time; ends with the handle.
pub(crate) fn watch(client: kube::Client) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(look(client)))
}

async fn look(client: kube::Client) {
    match is_absent(&client).await {
        Ok(Some(true)) => warn!(
            "No process renews the lease kube-system/kube-controller-manager: controllers for \
             workloads, tokens and garbage collection do not run; start kube-controller-manager"
        ),
        Ok(_) => {}
        // The cluster works or does not, whether or not we know.
        Err(err) => debug!(%err, "Cannot read the lease of kube-controller-manager"),
    }
}

/// `None` where this identity may not know.
async fn is_absent(client: &kube::Client) -> Result<Option<bool>, AnswerError> {
    sleep(WAIT).await;
    if !is_allowed(client, &RIGHT, None).await? {
        return Ok(None);
    }
    let before = renewed(client).await?;
    sleep(WAIT).await;
    let after = renewed(client).await?;
    Ok(Some(after.is_none() || after == before))
}

/// When it was renewed last, if anybody holds it.
async fn renewed(client: &kube::Client) -> Result<Option<String>, AnswerError> {
    let request = Request::get(LEASE).body(Body::empty())?;
    match client::answer(client, request, LIMIT).await?.decode::<Lease>() {
        Ok(Lease { spec }) if spec.holder_identity.is_empty() => Ok(None),
        Ok(Lease { spec }) => Ok(Some(spec.renew_time)),
        Err(AnswerError::Refused { status: http::StatusCode::NOT_FOUND, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use api_server_double::{Reply, client};
    use serde_json::{Value, json};

    use super::*;

    /// The result for the lease at the first and at the second read.
    async fn found(allowed: bool, looks: [Value; 2]) -> Option<bool> {
        let looked = AtomicU32::new(0);
        let client = client(move |asked| {
            if asked.path().ends_with("selfsubjectaccessreviews") {
                return Reply::Json(201, json!({"status": {"allowed": allowed}}));
            }
            assert_eq!(asked.path(), LEASE);
            let look = &looks[usize::from(looked.fetch_add(1, Ordering::Relaxed) > 0)];
            if look.is_null() {
                return Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"}));
            }
            Reply::Json(200, json!({"spec": look}))
        });
        is_absent(&client).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_without_renewals_is_not_a_running_program() {
        let held = |at: &str| json!({"holderIdentity": "a_1", "renewTime": at});
        let given_up = json!({"holderIdentity": "", "renewTime": "1"});
        for (looks, absent) in [
            ([held("1"), held("2")], false),
            ([Value::Null, held("2")], false),
            ([held("1"), held("1")], true),
            ([Value::Null, Value::Null], true),
            ([held("1"), given_up], true),
        ] {
            let told = format!("{looks:?}");
            assert_eq!(found(true, looks).await, Some(absent), "{told}");
        }
        assert_eq!(found(false, [Value::Null, Value::Null]).await, None, "it may not know");
    }
}
