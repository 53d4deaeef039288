//! Whether a credential may be sent to a member cluster. Pure. The only place that decides it: for both flavours, the
//! webhook, and the commands (`rule:a-credential-goes-where-its-owner-sent-it`).

use health::Code;
use probe::Problem;

use crate::api::is_name;
use crate::api::tke::{ClusterCredential, SecretRef};

/// Label of a Secret whose content its owner lets this program send to a member. Its value is `true`.
pub(crate) const SEND_LABEL: &str = "infra-controller-manager/send-to-member";
/// Type of the Secrets that hold tokens for the cluster in which they are.
pub(crate) const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// The caller on whose behalf a member is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A person at a command line.
    Command,
    /// An API server that showed its certificate to the webhook.
    AuthenticatedReview {
        /// The object is new and another one of its name is stored, or that is not known: it is refused after the review,
        /// so its author need not have any right to the stored one, for which credentials may exist.
        name_is_taken: bool,
    },
    /// Any client that reaches the port of the webhook.
    UnauthenticatedReview,
}

/// How the credential of one cluster object is looked up, once.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// The caller that needs it.
    pub asker: Asker,
    /// For a KubeFedCluster its namespace; for ClusterCredentials the only namespace of their Secrets,
    /// `None` for all.
    pub secret_namespace: Option<String>,
    /// Namespaces whose Secrets every ClusterProfile may name.
    pub profile_secret_namespaces: Vec<String>,
    /// `--tke-insecure-when-no-ca`.
    pub insecure_without_ca: bool,
}

/// The Cluster that a credential would be sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) name: &'a str,
    pub(crate) tenant: &'a str,
}

/// How a Secret is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// By an object of its own namespace.
    SameNamespace,
    /// By an object of another namespace.
    OtherNamespace,
    /// By a ClusterCredential, which has no namespace and may name a Secret of any.
    ClusterCredential,
}

/// Type and labels of a Secret, as far as they decide about its use. Not secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecretFacts {
    /// The type of the Secret is [`SERVICE_ACCOUNT_TOKEN`].
    pub(crate) is_service_account_token: bool,
    /// The Secret has the label [`SEND_LABEL`].
    pub(crate) may_be_sent: bool,
    /// The Secret has the authorities of the server's certificate.
    pub(crate) has_ca: bool,
}

/// Why a credential is not sent. The text shows no value of the credential, which may belong to another tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the webhook cannot identify the caller; set --webhook-client-ca-file")]
    UnknownCaller,
    #[error("a Cluster of this name is stored already, or the Clusters are not listed yet")]
    NameIsTaken,
    #[error("its clusterName is empty; TKEStack fills it in")]
    Unassigned,
    #[error("its clusterName is not the name of this Cluster")]
    ClusterName,
    #[error("its tenantID is not spec.tenantID of this Cluster")]
    Tenant,
    #[error(
        "a Secret of type {SERVICE_ACCOUNT_TOKEN} is sent only with the label {SEND_LABEL}: \"true\""
    )]
    ServiceAccountToken,
    #[error(
        "an object outside of its namespace may use it only with the label {SEND_LABEL}: \"true\""
    )]
    Unmarked,
    #[error(
        "it has no ca.crt; add one: a token is sent only to a server that the ca.crt of the same \
         Secret verifies"
    )]
    NoAuthority,
}

impl Refusal {
    /// `object` is what it is about, such as `Secret ns/one`.
    pub(crate) fn problem(self, object: &str) -> Problem {
        let code = match self {
            // It may come to be there.
            Self::Unassigned => Code::SecretMissing,
            _ => Code::CredentialRefused,
        };
        Problem::new(code, format!("{object} is not used: {self}"))
    }
}

/// Whether anything may be read or dialled for this asker at all.
pub(crate) fn may_ask(asker: Asker) -> Result<(), Refusal> {
    match asker {
        Asker::Command | Asker::AuthenticatedReview { name_is_taken: false } => Ok(()),
        Asker::AuthenticatedReview { name_is_taken: true } => Err(Refusal::NameIsTaken),
        Asker::UnauthenticatedReview => Err(Refusal::UnknownCaller),
    }
}

/// Whether a ClusterCredential is for this Cluster, whichever object names it.
pub(crate) fn is_for(credential: &ClusterCredential, target: Target<'_>) -> Result<(), Refusal> {
    if credential.cluster_name.is_empty() {
        return Err(Refusal::Unassigned);
    }
    if *credential.cluster_name != *target.name {
        return Err(Refusal::ClusterName);
    }
    if *credential.tenant_id != *target.tenant {
        return Err(Refusal::Tenant);
    }
    Ok(())
}

/// Whether the Secret of a ClusterCredential may be read; `namespace` is the only one in which they are, if there is
/// one.
///
/// # Errors
/// It is in another one, or no Secret can have that name.
pub(crate) fn may_read(of: &SecretRef, namespace: Option<&str>) -> Result<(), Problem> {
    if !is_name(&of.namespace) || !is_name(&of.name) {
        let text = "secretRef of a ClusterCredential is not valid: its namespace or name is \
            missing or not a valid name";
        return Err(Problem::new(Code::SecretMissing, text));
    }
    match namespace.filter(|namespace| **namespace != *of.namespace) {
        None => Ok(()),
        Some(namespace) => {
            let text = format!(
                "the Secret of a ClusterCredential has to be in namespace {namespace}, not {}",
                of.namespace
            );
            Err(Problem::new(Code::SecretMissing, text))
        }
    }
}

/// Whether the token or the key of a Secret may be sent.
pub(crate) fn may_send(reference: Reference, secret: SecretFacts) -> Result<(), Refusal> {
    let SecretFacts { is_service_account_token, may_be_sent, has_ca } = secret;
    if is_service_account_token && !may_be_sent {
        return Err(Refusal::ServiceAccountToken);
    }
    match reference {
        Reference::ClusterCredential | Reference::OtherNamespace if !may_be_sent => {
            Err(Refusal::Unmarked)
        }
        Reference::ClusterCredential if !has_ca => Err(Refusal::NoAuthority),
        Reference::SameNamespace | Reference::OtherNamespace | Reference::ClusterCredential => {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
