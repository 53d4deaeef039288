//! [`ClusterProfiles`]: what the ClusterProfiles of the Cluster Inventory API mean.

use std::fmt::Debug;
use std::time::Duration;

use health::{Code, Published, Report};
use jiff::Timestamp;
use objects::Object;
use probe::{Inputs, Problem};
use serde_json::Value;

use super::access::Way;
use super::options::ClusterProfileOptions;
use super::plugins::{PluginCounter, Plugins};
use super::status::OfManager;
use super::versions::Versions;
use super::{access, status};
use crate::api::Condition;
use crate::api::cluster_profile::{CLUSTER_PROFILES, CRD, ClusterProfile, ClusterProfileStatus};
use crate::engine::{MemberId, Members, Resolve, SharedKind, Statement, identity};
use crate::secret_data::SecretData;
use crate::shared_flavour::{Shared, SharedFlavour, SharedOptions};

/// How long a new profile may wait for its access providers before it is published as malformed: its manager creates it
/// first and writes the status later.
const PROVIDER_GRACE: Duration = Duration::from_secs(60);

/// The ClusterProfiles, in one run of the controller.
pub(crate) struct ClusterProfiles {
    options: ClusterProfileOptions,
    pub(super) shared: Shared<ClusterProfile>,
    pub(super) versions: Versions,
    pub(super) plugins: Plugins,
}

impl ClusterProfiles {
    pub(crate) fn new(
        options: ClusterProfileOptions,
        shared: Shared<ClusterProfile>,
        plugins: PluginCounter,
    ) -> Self {
        Self { options, shared, versions: Versions::default(), plugins: Plugins::new(plugins) }
    }

    /// Whether the manager of the cluster is one of ours.
    pub(super) fn is_manager_ours(&self, object: &Object<ClusterProfile>) -> bool {
        self.options.managers.contains(&object.body.spec.cluster_manager.name)
    }

    fn way<'a>(&'a self, object: &'a Object<ClusterProfile>) -> Result<Way<'a>, Problem> {
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

    fn shared(&self) -> &Shared<ClusterProfile> {
        &self.shared
    }

    fn options(&self) -> &SharedOptions {
        &self.options.shared
    }

    fn is_live(&self, object: &Object<ClusterProfile>) -> bool {
        let label = |key: &str| object.metadata.labels.get(key).map(String::as_str);
        self.options.selector.as_ref().is_none_or(|selector| selector.selects(label))
    }

    fn access_of(object: &Object<ClusterProfile>) -> u64 {
        access::access(object)
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

    fn after_probe(&self, cluster: &MemberId, report: &Report) {
        if report.finding.code() == Some(Code::Unauthorized) {
            self.plugins.refused(&cluster.uid);
        }
    }

    fn forget(&self, cluster: &MemberId) {
        self.plugins.forget(&cluster.uid);
        self.versions.forget(&cluster.uid);
    }
}

impl Resolve for ClusterProfiles {
    type Credential = ();

    const AUTHENTICATED_READ: bool = false;

    fn members(&self) -> Members<'_, ClusterProfile> {
        self.shared.members()
    }

    fn access(&self, object: &Object<ClusterProfile>) -> u64 {
        access::access(object)
    }

    fn addresses(&self, object: &Object<ClusterProfile>) -> Vec<Box<str>> {
        access::addresses(object, &self.options.providers)
    }

    fn secret(
        &self,
        object: &Object<ClusterProfile>,
        _: Option<&()>,
    ) -> Result<Option<String>, Problem> {
        let way = self.way(object);
        if !way.as_ref().is_ok_and(|way| way.plugin().is_some()) {
            self.plugins.forget(&object.metadata.uid);
        }
        Ok(way?.secret)
    }

    fn secret_entry(&self, object: &Object<ClusterProfile>) -> Option<String> {
        self.way(object).ok()?.entry
    }

    fn inputs(
        &self,
        object: &Object<ClusterProfile>,
        _: Option<()>,
        secret: Option<SecretData>,
    ) -> Result<Inputs, Problem> {
        let way = self.way(object)?;
        let credential = match way.plugin() {
            Some(plugin) => self.plugins.credential(&identity(object), way.provider(), plugin)?,
            None => way.credential(secret.as_ref())?,
        };
        way.inputs(credential, self.shared.allow_plaintext)
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
