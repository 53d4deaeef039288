//! [`SecretData`]: the Secret of a member, read singly and decoded into memory that is wiped
//! (`rule:secrets-are-never-shown`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use client::{Answer, CallError};
use health::Code;
use http::{Request, StatusCode, header};
use kube::client::Body;
use kube_api::Resource;
use probe::{ClientPair, Problem};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde::Deserialize;
use transport::wipe;

use crate::api::secret;
use crate::credential_policy::{
    Reference, SEND_LABEL, SERVICE_ACCOUNT_TOKEN, SecretFacts, may_send,
};

/// Where Secrets are.
pub(crate) const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");
const LIMIT: Duration = Duration::from_secs(10);
/// Type of the Secrets that Cluster API's providers make.
pub(crate) const CLUSTER_API_SECRET: &str = "cluster.x-k8s.io/secret";

/// The keys of a Secret that a member needs. Others are not decoded.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct SecretData {
    /// Type and labels that decide about the use of the Secret.
    #[serde(skip)]
    pub(crate) facts: SecretFacts,
    #[serde(deserialize_with = "secret::bytes_or_empty")]
    pub(crate) token: Option<SecretSlice<u8>>,
    #[serde(rename = "ca.crt", deserialize_with = "secret::bytes")]
    pub(crate) ca: Option<SecretSlice<u8>>,
    #[serde(rename = "tls.crt", deserialize_with = "secret::bytes")]
    pub(crate) certificate: Option<SecretSlice<u8>>,
    #[serde(rename = "tls.key", deserialize_with = "secret::bytes")]
    pub(crate) key: Option<SecretSlice<u8>>,
    /// The Secret has the type of those that Cluster API's providers make.
    #[serde(skip)]
    pub(crate) is_of_cluster_api: bool,
    /// The value of the one further key that was asked for.
    #[serde(skip)]
    pub(crate) entry: Option<SecretSlice<u8>>,
}

impl fmt::Debug for SecretData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretData(..)")
    }
}

/// A credential that could not be read. Contains no part of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The request failed.
    #[error("cannot read {what}: {source}")]
    Call { what: String, source: CallError },
    /// An answer other than the object or 404.
    #[error("cannot read {what}: the API server answered with status {status}")]
    Refused { what: String, status: StatusCode },
    #[error(
        "cannot read {what}: the permission to {right} is missing; apply \
         config/rbac/cluster-health-account.yaml (for ClusterProfiles and Cluster API's Clusters \
         namespaces/member-secrets.yaml in each namespace of them), and cluster-health-process.yaml without \
         --use-service-account-credentials"
    )]
    Denied { what: String, right: &'static str },
    /// Secrets are not listed yet, or not permitted.
    #[error("cannot read a Secret: {0}")]
    Unlisted(String),
    /// The object was read and cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The objects were read, and the cluster cannot be reached as they say.
    #[error(transparent)]
    Problem(#[from] Problem),
}

impl ReadError {
    /// The error of a request that takes this right.
    pub(crate) fn of_right(self, right: &'static str) -> Self {
        match self {
            Self::Refused { what, status: StatusCode::FORBIDDEN } => Self::Denied { what, right },
            error => error,
        }
    }

    /// Whether the credential that was read before no longer counts. After other errors it is used
    /// until another attempt to read it succeeds.
    pub(crate) fn ends_the_client(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::Unusable(_) | Self::Problem(_))
    }

    /// The code for the cluster: a mistake in its set-up, or a limit of ours, as a missing right, which
    /// says nothing about the cluster (`rule:a-missing-right-is-no-failure`).
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Unusable(_) => Code::SecretMissing,
            Self::Problem(problem) => problem.code(),
            Self::Call { .. } | Self::Refused { .. } | Self::Denied { .. } | Self::Unlisted(_) => {
                Code::OwnLimit
            }
        }
    }
}

/// One GET of an object with a credential, which the caller wipes.
pub(crate) async fn get(
    client: &kube::Client,
    path: &str,
    limit: Duration,
) -> Result<Answer, CallError> {
    let request = Request::get(path).header(header::ACCEPT, "application/json");
    let request = request.body(Body::empty());
    let request = request.map_err(|error| CallError::NotSent(Box::new(error)))?;
    client::answer(client, request, limit).await
}

/// One object as JSON, which the caller wipes; `None` when it does not exist.
pub(crate) async fn find(
    client: &kube::Client,
    resource: &Resource,
    key: &str,
    limit: Duration,
) -> Result<Option<Bytes>, ReadError> {
    let what = || format!("{} {key}", resource.kind);
    let answer = get(client, &resource.object_path(key), limit).await;
    let Answer { status, body, .. } =
        answer.map_err(|source| ReadError::Call { what: what(), source })?;
    match status {
        StatusCode::OK => Ok(Some(body)),
        StatusCode::NOT_FOUND => Ok(None),
        status => Err(ReadError::Refused { what: what(), status }),
    }
}

/// The error of a Secret that cannot be decoded.
pub(crate) fn not_base64(key: &str) -> ReadError {
    let keys = "a value that is needed is not base64";
    ReadError::Unusable(format!("cannot decode Secret {key}: {keys}"))
}

/// The problem of a credential that is not there, or cannot be found.
pub(crate) fn missing(text: impl Into<String>) -> Problem {
    Problem::new(Code::SecretMissing, text)
}

/// A client certificate with its key; `None` without both. `incomplete` names the place of one without the other.
///
/// # Errors
/// Only one of them is there.
pub(crate) fn client_pair(
    certificate: Option<SecretSlice<u8>>,
    key: Option<SecretSlice<u8>>,
    incomplete: impl FnOnce() -> String,
) -> Result<Option<ClientPair>, Problem> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            Ok(Some(ClientPair { certificate: certificate.expose_secret().to_vec(), key }))
        }
        _ => Err(Problem::new(Code::ClientCertificate, incomplete())),
    }
}

impl SecretData {
    /// Reads the Secret with this key, and of its data also `entry`; `None` when it does not exist.
    pub(crate) async fn read(
        client: &kube::Client,
        key: &str,
        entry: Option<&str>,
    ) -> Result<Option<Self>, ReadError> {
        let found = find(client, &SECRETS, key, LIMIT).await;
        let Some(body) = found.map_err(|error| error.of_right("get secrets"))? else {
            return Ok(None);
        };
        let read = Self::decode_with(&body, entry);
        wipe(body);
        read.map(Some).ok_or_else(|| not_base64(key))
    }

    /// Decodes a Secret, and of its data also `entry`; `None` when a value is not base64.
    pub(crate) fn decode_with(json: &[u8], entry: Option<&str>) -> Option<Self> {
        let mut data = Self::decode(json)?;
        if let Some(entry) = entry {
            data.entry = secret::bytes_at(json, &["data", entry]).ok()?;
        }
        Some(data)
    }

    pub(crate) fn decode(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Secret {
            #[serde(default)]
            metadata: Option<Labelled>,
            #[serde(default, rename = "type")]
            kind: Option<Box<str>>,
            #[serde(default)]
            data: Option<SecretData>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Labelled {
            labels: Option<BTreeMap<Box<str>, Box<str>>>,
        }
        let Secret { metadata, kind, data } = serde_json::from_slice::<Secret>(json).ok()?;
        let mut data = data.unwrap_or_default();
        let label = metadata.and_then(|it| it.labels?.remove(SEND_LABEL));
        data.is_of_cluster_api = kind.as_deref() == Some(CLUSTER_API_SECRET);
        data.facts = SecretFacts {
            is_service_account_token: kind.as_deref() == Some(SERVICE_ACCOUNT_TOKEN),
            may_be_sent: label.is_some_and(|value| *value == *"true"),
            has_ca: data.ca.is_some(),
        };
        Some(data)
    }

    /// The Secret of this name, if it is there and its content may be sent.
    ///
    /// # Errors
    /// The Secret does not exist, or its content may not be sent.
    pub(crate) fn to_send<'a>(
        found: Option<&'a Self>,
        reference: Reference,
        name: &str,
    ) -> Result<&'a Self, Problem> {
        let secret = found.ok_or_else(|| missing(format!("Secret {name} does not exist")))?;
        may_send(reference, secret.facts)
            .map_err(|refusal| refusal.problem(&format!("Secret {name}")))?;
        Ok(secret)
    }

    /// The token of the Secret of this name.
    ///
    /// # Errors
    /// It is missing, empty or not text.
    pub(crate) fn needed_token(&self, name: &str) -> Result<SecretString, Problem> {
        self.token().ok_or_else(|| match self.token {
            Some(_) => {
                let text = format!("key token of Secret {name} is empty or not text");
                Problem::new(Code::TokenEmpty, text)
            }
            None => missing(format!("Secret {name} has no key token")),
        })
    }

    /// The token as text; `None` when it is missing or not text.
    pub(crate) fn token(&self) -> Option<SecretString> {
        let text = std::str::from_utf8(self.token.as_ref()?.expose_secret()).ok()?;
        Some(SecretString::from(text)).filter(|text| !text.expose_secret().trim().is_empty())
    }
}

#[cfg(test)]
mod tests;
