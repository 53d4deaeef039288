//! The flavour `capi`: the Clusters of Cluster API, whose kubeconfigs their control plane providers keep in Secrets;
//! `access.rs` has how a cluster is reached.

use std::time::Duration;

use health::Code;
use objects::Object;
use probe::{Inputs, Problem};

use crate::api::Condition;
use crate::api::cluster_api::{CLUSTERS, CRD, Cluster, ClusterStatus, pause, secret_name};
use crate::engine::{CredentialSource, Resolve, SharedKind};
use crate::secret_data::SecretData;
use crate::shared_flavour::{Shared, SharedFlavour};

pub(crate) mod access;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

/// How long the Secret of a Cluster whose control plane answers may be missing before that is published: its provider
/// makes it at about the same time.
const SECRET_GRACE: Duration = Duration::from_secs(60);

/// The Clusters of Cluster API, in one run of the controller.
pub(crate) struct ClusterApi {
    pub(crate) shared: Shared<Cluster>,
}

impl SharedFlavour for ClusterApi {
    type Schema = Cluster;

    const NAME: &'static str = "capi";
    const KIND: SharedKind = SharedKind { crd: CRD, versions: &CLUSTERS };
    const QUEUE: &'static str = "cluster_health_capi";
    const MANIFEST: &'static str = "config/rbac/cluster-health-capi.yaml";
    const SECRETS_MANIFEST: &'static str =
        "config/rbac/namespaces/member-secrets.yaml, in each namespace of Clusters";

    fn shared(&self) -> &Shared<Cluster> {
        &self.shared
    }

    fn is_live(&self, object: &Object<Cluster>) -> bool {
        object.status.initialization.control_plane_initialized && !object.metadata.deleting()
    }

    fn pause(object: &Object<Cluster>) -> Option<&'static str> {
        pause(object)
    }

    fn access_of(object: &Object<Cluster>) -> u64 {
        health::hash(&format!("{} {:?}", secret_name(object), access::addresses(object)))
    }

    fn conditions(status: &ClusterStatus) -> &[Condition] {
        &status.conditions
    }

    /// Nobody reads the conditions of a Cluster that is being deleted, and those in other namespaces may be of another
    /// installation.
    fn may_withdraw(&self, object: &Object<Cluster>) -> bool {
        self.shared.options.include(object) && !object.metadata.deleting()
    }
}

impl Resolve for ClusterApi {
    type Credential = ();

    fn addresses(&self, object: &Object<Cluster>) -> Vec<Box<str>> {
        access::addresses(object)
    }

    fn source(
        &self,
        object: &Object<Cluster>,
        _: Option<&()>,
    ) -> Result<CredentialSource, Problem> {
        let (key, entry) = (access::secret_key(object)?.into(), Some(access::KEY.to_owned()));
        Ok(CredentialSource::Secret { key, entry })
    }

    fn inputs(
        &self,
        object: &Object<Cluster>,
        _: Option<()>,
        secret: Option<SecretData>,
    ) -> Result<Inputs, Problem> {
        access::inputs(object, secret.as_ref(), self.shared.allow_plaintext)
    }

    fn grace(&self, object: &Object<Cluster>, problem: &Problem) -> Option<Duration> {
        let is_new = !Self::has_ours(&object.status);
        (is_new && problem.code() == Code::SecretMissing).then_some(SECRET_GRACE)
    }
}
