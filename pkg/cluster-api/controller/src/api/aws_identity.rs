//! [`AwsIdentity`]: upstream's three kinds of AWS credentials, in one type with the fields of all.

use std::collections::BTreeMap;

use kube_api::Resource;
use objects::Schema;
use serde::{Deserialize, Serialize};

use super::INFRASTRUCTURE_GROUP;

/// The only name that an AWSClusterControllerIdentity may have.
pub(crate) const CONTROLLER_IDENTITY_NAME: &str = "default";

/// The kind of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum IdentityKind {
    /// The credentials of this program.
    Controller,
    /// A role that another identity assumes.
    Role,
    /// Access keys in a Secret.
    Static,
}

impl IdentityKind {
    pub(crate) const ALL: [Self; 3] = [Self::Controller, Self::Role, Self::Static];

    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "AWSClusterControllerIdentity",
            Self::Role => "AWSClusterRoleIdentity",
            Self::Static => "AWSClusterStaticIdentity",
        }
    }

    /// The kind in the version that it is stored in.
    pub(crate) fn resource(self) -> Resource {
        let plural = match self {
            Self::Controller => "awsclustercontrolleridentities",
            Self::Role => "awsclusterroleidentities",
            Self::Static => "awsclusterstaticidentities",
        };
        Resource::cluster(INFRASTRUCTURE_GROUP, "v1beta2", self.as_str(), plural)
    }
}

/// An object of one of these kinds.
#[derive(Debug)]
pub(crate) enum AwsIdentity {}

impl Schema for AwsIdentity {
    type Body = AwsIdentityBody;
    type Status = ();
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AwsIdentityBody {
    #[serde(default)]
    pub(crate) spec: AwsIdentitySpec,
}

/// The fields of the three kinds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AwsIdentitySpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_namespaces: Option<AllowedNamespaces>,
    /// Of a static one: the Secret with its keys.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) secret_ref: String,
    #[serde(rename = "roleARN", skip_serializing_if = "String::is_empty")]
    pub(crate) role_arn: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) session_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_seconds: Option<i32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) inline_policy: String,
    #[serde(rename = "policyARNs", skip_serializing_if = "Vec::is_empty")]
    pub(crate) policy_arns: Vec<String>,
    #[serde(rename = "externalID", skip_serializing_if = "String::is_empty")]
    pub(crate) external_id: String,
    /// Of a role: who assumes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_identity_ref: Option<IdentityReference>,
}

/// An identity, as AWSClusters and roles name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdentityReference {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// The namespaces whose AWSClusters may use an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AllowedNamespaces {
    pub(crate) list: Option<Vec<String>>,
    pub(crate) selector: Selector,
}

/// `metav1.LabelSelector`. Upstream distinguishes an empty field from an absent one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Selector {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) match_labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) match_expressions: Option<Vec<Requirement>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Requirement {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(default)]
    pub(crate) values: Vec<String>,
}
