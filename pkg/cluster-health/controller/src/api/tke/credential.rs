//! [`ClusterCredential`]: our identity at a member cluster.

use std::collections::BTreeMap;
use std::fmt;

use kube_api::ListMeta;
use kube_api::go::null_is_default;
use secrecy::{SecretSlice, SecretString};
use serde::{Deserialize, Deserializer};

use crate::api::secret;

/// The fields of a ClusterCredential that a probe needs. Keys of authorities, of etcd and of
/// bootstrapping are not decoded. It cannot be printed (`rule:secrets-are-never-shown`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterCredential {
    pub metadata: CredentialMetadata,
    #[serde(rename = "tenantID", deserialize_with = "null_is_default")]
    pub tenant_id: Box<str>,
    /// Name of the Cluster it is for.
    #[serde(deserialize_with = "null_is_default")]
    pub cluster_name: Box<str>,
    /// Authorities of the API server's certificate, in PEM.
    #[serde(deserialize_with = "secret::bytes")]
    pub ca_cert: Option<SecretSlice<u8>>,
    /// Client certificate, in PEM.
    #[serde(deserialize_with = "secret::bytes")]
    pub client_cert: Option<SecretSlice<u8>>,
    /// Key of the client certificate, in PEM.
    #[serde(deserialize_with = "secret::bytes")]
    pub client_key: Option<SecretSlice<u8>>,
    #[serde(deserialize_with = "secret::text")]
    pub token: Option<SecretString>,
    #[serde(rename = "as", deserialize_with = "null_is_default")]
    pub as_user: Box<str>,
    #[serde(rename = "as-groups", deserialize_with = "null_is_default")]
    pub as_groups: Vec<Box<str>>,
    /// Further facts about the user to act as; each value is a comma list.
    #[serde(rename = "as-user-extra", deserialize_with = "null_is_default")]
    pub as_user_extra: BTreeMap<Box<str>, Box<str>>,
    /// The Secret with what is not here.
    pub secret_ref: Option<SecretRef>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CredentialMetadata {
    pub name: Box<str>,
    /// The resourceVersion; `None` when it is missing or is no number.
    #[serde(deserialize_with = "version")]
    pub resource_version: Option<u64>,
    /// When it was made, in RFC 3339, so that later is greater.
    #[serde(deserialize_with = "null_is_default")]
    pub creation_timestamp: Box<str>,
}

fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Box<str>>::deserialize(from)?.and_then(|text| text.parse().ok()))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct SecretRef {
    pub namespace: Box<str>,
    pub name: Box<str>,
}

/// A ClusterCredential, or a list of them, that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode a ClusterCredential: {field} is not of the expected form")]
pub(crate) struct CredentialError {
    /// Path of the field. Its value is never shown.
    pub field: String,
}

/// One page of a list of ClusterCredentials.
#[derive(Deserialize)]
pub(crate) struct CredentialPage {
    #[serde(default)]
    metadata: ListMeta,
    pub(crate) items: Vec<ClusterCredential>,
}

impl CredentialPage {
    /// Reads it; the error names the first field that is not of the expected form.
    pub(crate) fn read(json: &[u8]) -> Result<Self, CredentialError> {
        read(json)
    }

    /// The token of the next page; `None` after the last one.
    pub(crate) fn next(&self) -> Option<&str> {
        self.metadata.token.as_deref().filter(|token| !token.is_empty())
    }
}

impl ClusterCredential {
    /// Reads it; the error names the first field that is not of the expected form.
    pub(crate) fn read(json: &[u8]) -> Result<Self, CredentialError> {
        read(json)
    }
}

fn read<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, CredentialError> {
    let mut from = serde_json::Deserializer::from_slice(json);
    serde_path_to_error::deserialize(&mut from)
        .map_err(|error| CredentialError { field: error.path().to_string() })
}

impl fmt::Debug for ClusterCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCredential")
            .field("name", &self.metadata.name)
            .field("cluster_name", &self.cluster_name)
            .finish_non_exhaustive()
    }
}
