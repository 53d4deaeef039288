//! The flavour `clusterprofile`: the ClusterProfiles of the Cluster Inventory API. Other programs own the objects and write
//! the rest of their status (`rule:a-shared-status-is-shared`).
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | the flags |
//! | `access.rs`, `providers.rs` | how a cluster is reached; the access providers |
//! | `versions.rs` | the versions of clusters, a fact that is read apart from the probes |
//! | `status.rs` | conditions and property, and reading them back |

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use access::Way;
use health::Published;
use jiff::Timestamp;
use objects::Object;
use options::ClusterProfileOptions;
use probe::{Inputs, Problem};
use serde_json::Value;
use status::OfManager;
use versions::Versions;

use crate::api::Condition;
use crate::api::cluster_profile::{CLUSTER_PROFILES, CRD, ClusterProfile, ClusterProfileStatus};
use crate::engine::{
    Companions, CredentialSource, Followed, MemberId, Resolve, SharedKind, Statement,
};
use crate::secret_data::SecretData;
use crate::shared_flavour::{Shared, SharedFlavour};

pub(crate) mod access;
pub(crate) mod options;
pub(crate) mod providers;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod versions;

/// How long a new profile may wait for its access providers before it is published as malformed: its manager creates it
/// first and writes the status later.
const PROVIDER_GRACE: Duration = Duration::from_secs(60);

/// The ClusterProfiles, in one run of the controller.
pub(crate) struct ClusterProfiles {
    options: ClusterProfileOptions,
    shared: Shared<ClusterProfile>,
    versions: Arc<Versions>,
}

impl ClusterProfiles {
    pub(crate) fn new(options: ClusterProfileOptions, shared: Shared<ClusterProfile>) -> Self {
        Self { options, shared, versions: Arc::default() }
    }

    /// Whether the manager of the cluster is one of ours.
    fn is_manager_ours(&self, object: &Object<ClusterProfile>) -> bool {
        self.options.managers.contains(&object.body.spec.cluster_manager.name)
    }

    fn way<'a>(&self, object: &'a Object<ClusterProfile>) -> Result<Way<'a>, Problem> {
        access::way(object, &self.options.secret_namespaces, &self.options.providers)
    }

    fn of_manager(&self, object: &Object<ClusterProfile>) -> OfManager {
        let is_ours = self.is_manager_ours(object);
        let known = self.versions.get(&object.metadata.uid);
        let stored = &object.status.version.kubernetes;
        let stored = || (is_ours && !stored.is_empty()).then(|| stored.clone());
        OfManager { is_ours, version: known.or_else(stored) }
    }
}

impl SharedFlavour for ClusterProfiles {
    type Schema = ClusterProfile;

    const NAME: &'static str = "clusterprofile";
    const KIND: SharedKind = SharedKind { crd: CRD, versions: &CLUSTER_PROFILES };
    const QUEUE: &'static str = "cluster_health_clusterprofile";
    const MANIFEST: &'static str = "config/rbac/cluster-health-clusterprofile.yaml";
    const SECRETS_MANIFEST: &'static str =
        "config/rbac/namespaces/member-secrets.yaml, in each namespace of ClusterProfiles";

    fn shared(&self) -> &Shared<ClusterProfile> {
        &self.shared
    }

    fn is_live(&self, object: &Object<ClusterProfile>) -> bool {
        let label = |key: &str| object.metadata.labels.get(key).map(String::as_str);
        self.options.selector.as_ref().is_none_or(|selector| selector.selects(label))
    }

    fn access_of(object: &Object<ClusterProfile>) -> u64 {
        let ClusterProfileStatus { access_providers, credential_providers, .. } = &object.status;
        let providers = serde_json::to_string(access_providers).ok();
        health::hash(&format!("{providers:?} {}", credential_providers.is_empty()))
    }

    fn conditions(status: &ClusterProfileStatus) -> &[Condition] {
        &status.conditions
    }

    fn has_ours(status: &ClusterProfileStatus) -> bool {
        status::has_ours(status)
    }

    fn seed_of(status: &ClusterProfileStatus, now: Timestamp) -> Option<Published> {
        status::seed(status, now)
    }

    fn further(&self, object: &Object<ClusterProfile>) -> impl Debug {
        self.of_manager(object)
    }

    fn status(
        &self,
        object: &Object<ClusterProfile>,
        published: &Published,
        statement: &Statement<'_>,
    ) -> Value {
        status::fields(published, statement, &self.of_manager(object), &object.status)
    }

    fn forget(&self, cluster: &MemberId) {
        self.versions.forget(&cluster.uid);
    }

    fn companions(flavour: Arc<Self>, followed: &Followed<'_, Self>) -> Companions {
        let (versions, of) = (Arc::clone(&flavour.versions), Arc::clone(&flavour));
        versions.companions(flavour, followed, move |object| of.is_manager_ours(object))
    }
}

impl Resolve for ClusterProfiles {
    type Credential = ();

    fn addresses(&self, object: &Object<ClusterProfile>) -> Vec<Box<str>> {
        access::addresses(object, &self.options.providers)
    }

    fn source(
        &self,
        object: &Object<ClusterProfile>,
        _: Option<&()>,
    ) -> Result<CredentialSource, Problem> {
        Ok(self.way(object)?.source)
    }

    fn inputs(
        &self,
        object: &Object<ClusterProfile>,
        _: Option<()>,
        secret: Option<SecretData>,
    ) -> Result<Inputs, Problem> {
        self.way(object)?.inputs(secret.as_ref(), self.shared.allow_plaintext)
    }

    fn grace(&self, object: &Object<ClusterProfile>, _: &Problem) -> Option<Duration> {
        let ClusterProfileStatus { access_providers, credential_providers, .. } = &object.status;
        let is_new = access_providers.is_empty() && credential_providers.is_empty();
        (is_new && !Self::has_ours(&object.status)).then_some(PROVIDER_GRACE)
    }

    /// The version is read again.
    fn retargeted(&self, cluster: &MemberId) {
        self.versions.forget(&cluster.uid);
    }
}
