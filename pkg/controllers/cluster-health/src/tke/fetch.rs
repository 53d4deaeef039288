//! Reads ClusterCredentials and Secrets from the management API, one at a time. Nothing of them is
//! kept here (`rule:secrets-are-never-shown`).

use std::time::Duration;

use client::{Answer, CallError};
use health::Code;
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
    /// For want of a right of ours.
    #[error(
        "cannot read {what}: the right to get and list clustercredentials is missing; apply config/rbac/cluster-health-tke.yaml"
    )]
    Denied { what: &'static str },
    /// Those who need no Secret do not wait for it.
    #[error("cannot read a Secret: {0}")]
    Unlisted(String),
    /// It is not of its kind's form.
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
            Self::Denied { .. } | Self::Credential(_) => true,
            Self::Secret(error) => error.ends_the_client(),
            Self::Call { .. } | Self::Refused { .. } | Self::Unlisted(_) => false,
        }
    }

    /// What it says of the cluster: a mistake in its set-up, or nothing, as a right that we lack
    /// (`rule:a-missing-right-is-no-failure`).
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Credential(_) => Code::SecretMissing,
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
            status => Err(refused(CREDENTIAL, status)),
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
