//! Reads ClusterCredentials and Secrets from the management API, one at a time. Nothing of them is
//! kept here (`rule:secrets-are-never-shown`).

use std::time::Duration;

use client::{Answer, CallError};
use health::Code;
use http::{Request, StatusCode};
use kube::client::Body;
use transport::wipe;

use super::choice::{Choice, choose};
use crate::api::is_name;
use crate::api::tke::{
    CLUSTER_CREDENTIALS, ClusterCredential, CredentialError, CredentialPage, SecretRef,
};
use crate::credential_policy::Target;
use crate::secret_data::{ReadError, SecretData};

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How the credentials of one cluster are selected: by field, and by upstream's label on servers
/// that cannot select by field.
const FIELD: &str = "fieldSelector";
const LABEL: &str = "labelSelector";
const CLUSTER_LABEL: &str = "tkestack.io/cluster-name";
/// Credentials of one cluster that are read at a time, and how many times.
const PAGE: &str = "50";
const PAGES_MAX: usize = 21;

/// Why an object could not be read. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// No answer.
    #[error("cannot read {what}: {source}")]
    Call { what: &'static str, source: CallError },
    /// An answer other than the object or 404.
    #[error("cannot read {what}: the API server answered {status}")]
    Refused { what: &'static str, status: StatusCode },
    /// For want of a right of ours.
    #[error(
        "cannot read {what}: the right to get and list clustercredentials is missing; apply config/rbac/cluster-health-account.yaml, and cluster-health-process.yaml without --use-service-account-credentials"
    )]
    Denied { what: &'static str },
    /// The list has no end.
    #[error(
        "cannot list the ClusterCredentials of a Cluster: there are more than 1000; name one in spec.clusterCredentialRef"
    )]
    TooMany,
    /// Secrets are not listed yet, or not permitted.
    #[error("cannot read a Secret: {0}")]
    Unlisted(String),
    /// The ClusterCredential cannot be parsed.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The Secret of one.
    #[error(transparent)]
    Secret(#[from] ReadError),
}

impl FetchError {
    /// The credential that was read before counts no more. Anything else is tried again first.
    pub(crate) fn ends_the_client(&self) -> bool {
        match self {
            Self::Denied { .. } | Self::Credential(_) | Self::TooMany => true,
            Self::Secret(error) => error.ends_the_client(),
            Self::Call { .. } | Self::Refused { .. } | Self::Unlisted(_) => false,
        }
    }

    /// What it says of the cluster: a mistake in its set-up, or nothing, as a right that we lack
    /// (`rule:a-missing-right-is-no-failure`).
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Credential(_) | Self::TooMany => Code::SecretMissing,
            Self::Secret(error) => error.code(),
            Self::Call { .. } | Self::Refused { .. } | Self::Denied { .. } | Self::Unlisted(_) => {
                Code::OwnLimit
            }
        }
    }
}

fn refused(what: &'static str, status: StatusCode) -> FetchError {
    match status {
        StatusCode::FORBIDDEN => FetchError::Denied { what },
        status => FetchError::Refused { what, status },
    }
}

const CREDENTIAL: &str = "a ClusterCredential";

/// Reads from the management API.
pub(crate) struct Fetch {
    client: kube::Client,
}

impl Fetch {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// The ClusterCredential of this name, which may be none.
    pub(crate) async fn credential(
        &self,
        name: &str,
    ) -> Result<Option<ClusterCredential>, FetchError> {
        if !is_name(name) {
            return Ok(None);
        }
        let answer = self.get(&CLUSTER_CREDENTIALS.object_path(name), CREDENTIAL).await?;
        match answer.status {
            StatusCode::OK => {
                let read = ClusterCredential::read(&answer.body);
                wipe(answer.body);
                Ok(Some(read?))
            }
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(refused(CREDENTIAL, status)),
        }
    }

    /// The ClusterCredential to use for a cluster that names none. Those of other tenants are left out by the server, so
    /// that no number of them hides the own one; they are read only to name them when there is no own one.
    pub(crate) async fn credential_of(&self, target: Target<'_>) -> Result<Choice, FetchError> {
        let Target { name, tenant } = target;
        let by_name = format!("clusterName={name}");
        let of_tenant = format!("{by_name},tenantID={}", escaped(tenant));
        let Some(found) = self.all(FIELD, &of_tenant).await? else {
            // A server that cannot select by both fields, or by no field at all.
            let found = match self.all(FIELD, &by_name).await? {
                Some(found) => Some(found),
                None => self.all(LABEL, &format!("{CLUSTER_LABEL}={name}")).await?,
            };
            let found = found.ok_or(refused(CREDENTIAL, StatusCode::BAD_REQUEST))?;
            return Ok(choose(found, target));
        };
        match choose(found, target) {
            Choice::None => {
                let all = self.all(FIELD, &by_name).await?.unwrap_or_default();
                let all = choose(all, target);
                // One that came meanwhile is told by its event.
                Ok(if matches!(all, Choice::OfOthers) { all } else { Choice::None })
            }
            choice => Ok(choice),
        }
    }

    /// All pages of a list: the newest one may stand on the last page. `None` when the server cannot select so.
    async fn all(
        &self,
        selector: &str,
        by: &str,
    ) -> Result<Option<Vec<ClusterCredential>>, FetchError> {
        let (mut found, mut token) = (Vec::new(), None::<Box<str>>);
        for _ in 0..PAGES_MAX {
            let answer = self.get(&selection(selector, by, token.as_deref()), CREDENTIAL).await?;
            match answer.status {
                StatusCode::OK => {}
                StatusCode::BAD_REQUEST => return Ok(None),
                status => return Err(refused(CREDENTIAL, status)),
            }
            let read = CredentialPage::read(&answer.body);
            wipe(answer.body);
            let page = read?;
            token = page.next().map(Into::into);
            found.extend(page.items);
            if token.is_none() {
                return Ok(Some(found));
            }
        }
        Err(FetchError::TooMany)
    }

    /// The Secret with what a credential does not say itself.
    pub(crate) async fn secret(&self, of: &SecretRef) -> Result<Option<SecretData>, ReadError> {
        SecretData::read(&self.client, &format!("{}/{}", of.namespace, of.name)).await
    }

    async fn get(&self, path: &str, what: &'static str) -> Result<Answer, FetchError> {
        let request = Request::get(path).header(http::header::ACCEPT, "application/json");
        let request = request.body(Body::empty());
        let request = request.map_err(|error| CallError::NotSent(Box::new(error)));
        let sent = async { client::answer(&self.client, request?, ATTEMPT).await };
        sent.await.map_err(|source| FetchError::Call { what, source })
    }
}

/// A value in a field selector.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

fn selection(selector: &str, by: &str, token: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(selector, by).append_pair("limit", PAGE);
    query.extend_pairs(token.map(|token| ("continue", token)));
    format!("{}?{}", CLUSTER_CREDENTIALS.collection_path(None), query.finish())
}

#[cfg(test)]
mod tests {
    use api_server_double::{ApiServer, Reply};
    use serde_json::{Value, json};

    use super::*;

    fn credential(name: &str, made: &str) -> Value {
        json!({"metadata": {"name": name, "creationTimestamp": made}, "clusterName": "cls-1"})
    }

    #[tokio::test]
    async fn the_newest_credential_is_found_on_the_last_page() {
        let server = ApiServer::new(|asked| {
            let is_second = asked.query().contains("continue=second%2Fpage");
            let (page, token) = if is_second {
                (json!([credential("new", "2026-01-02T00:00:00Z")]), "")
            } else {
                (json!([credential("old", "2026-01-01T00:00:00Z")]), "second/page")
            };
            Reply::Json(200, json!({"metadata": {"continue": token}, "items": page}))
        });
        let target = Target { name: "cls-1", tenant: "" };
        let found = Fetch::new(server.client()).credential_of(target).await.unwrap();
        let Choice::Credential { credential, others } = found else { panic!("{found:?}") };
        assert_eq!((&*credential.metadata.name, others), ("new", 1));
    }

    #[tokio::test]
    async fn a_list_of_credentials_without_an_end_is_an_error() {
        let server = ApiServer::new(|_| {
            Reply::Json(200, json!({"metadata": {"continue": "again"}, "items": []}))
        });
        let target = Target { name: "cls-1", tenant: "" };
        let error = Fetch::new(server.client()).credential_of(target).await.unwrap_err();
        assert!(error.to_string().contains("more than 1000"), "{error}");
    }
}
