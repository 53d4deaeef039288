//! Reads ClusterCredentials and Secrets from the management API, one at a time. Nothing of them is
//! kept here (`rule:secrets-are-never-shown`).

use std::time::Duration;

use client::{Answer, CallError};
use http::{Request, StatusCode};
use kube::client::Body;

use super::choice::{Choice, choose};
use crate::api::tke::{CLUSTER_CREDENTIALS, ClusterCredential, CredentialError, SecretRef};
use crate::object_name::is_name;
use crate::secret_data::{ReadError, SecretData, wipe};

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Upstream's label for servers that cannot select by field.
const LABEL: &str = "tkestack.io/cluster-name";
/// Credentials of one cluster that are looked at.
const MOST: &str = "50";

/// Why an object could not be read. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// No answer.
    #[error("cannot read {what}: {source}")]
    Call { what: &'static str, source: CallError },
    /// Another answer than the object, or that there is none.
    #[error("cannot read {what}: the API server answered {status}")]
    Refused { what: &'static str, status: StatusCode },
    /// Those who need no Secret do not wait for it.
    #[error("cannot read a Secret: the Secrets are not listed yet; see the log")]
    Unlisted,
    /// It is not of its kind's form.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The Secret of one.
    #[error(transparent)]
    Secret(#[from] ReadError),
}

impl FetchError {
    /// A mistake in the set-up, which the cluster says. Anything else is tried again before a word
    /// is said.
    pub(crate) fn is_mistake(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status == StatusCode::FORBIDDEN,
            Self::Credential(_) => true,
            Self::Secret(error) => error.is_mistake(),
            Self::Call { .. } | Self::Unlisted => false,
        }
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
            status => Err(FetchError::Refused { what: CREDENTIAL, status }),
        }
    }

    /// The ClusterCredential to use for a cluster that names none.
    pub(crate) async fn credential_of(&self, cluster: &str) -> Result<Option<Choice>, FetchError> {
        let mut answer = self.select("fieldSelector", "clusterName", cluster).await?;
        if answer.status == StatusCode::BAD_REQUEST {
            answer = self.select("labelSelector", LABEL, cluster).await?;
        }
        match answer.status {
            StatusCode::OK => {
                let read = ClusterCredential::read_list(&answer.body);
                wipe(answer.body);
                Ok(choose(read?, cluster))
            }
            status => Err(FetchError::Refused { what: CREDENTIAL, status }),
        }
    }

    async fn select(&self, selector: &str, by: &str, value: &str) -> Result<Answer, FetchError> {
        self.get(&selection(selector, &format!("{by}={value}")), CREDENTIAL).await
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

fn selection(selector: &str, by: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let query = query.append_pair(selector, by).append_pair("limit", MOST).finish();
    format!("{}?{query}", CLUSTER_CREDENTIALS.collection_path(None))
}
