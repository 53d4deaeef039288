//! [`ClusterProfiles`]: the ClusterProfiles of the Cluster Inventory API, as the engine sees them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use health::{Code, Health, Policy, Report, Status};
use jiff::Timestamp;
use kube_api::Resource;
use objects::Object;
use probe::{Inputs, Problem};

use super::access::Way;
use super::options::ClusterProfileOptions;
use super::plugins::{PluginCounter, Plugins};
use super::status::OfManager;
use super::versions::Versions;
use super::{access, status};
use crate::api::cluster_profile::{CLUSTER_PROFILES, ClusterProfile};
use crate::engine::{
    AnnouncedEnds, Connections, Flavour, MemberId, Members, ObjectModel, Objects, Resolve, Seed,
    Statement, StatusWrite, Supervision, identity,
};
use crate::secret_data::SecretData;
use crate::shared_conditions;

/// How long a new profile may wait for its access providers before it is published as malformed: its manager creates it
/// first and writes the status later.
const PROVIDER_GRACE: Duration = Duration::from_secs(60);

/// The flavour `clusterprofile`, in one run of the controller.
pub(crate) struct ClusterProfiles {
    pub(super) options: ClusterProfileOptions,
    /// Whether credentials may be sent over plain http.
    allow_plaintext: bool,
    pub(super) prober: Arc<probe::Prober>,
    pub(super) objects: Objects<ClusterProfile>,
    pub(super) connections: Connections,
    /// The version of the API that is used; set when it is known that its status can be shared.
    kind: OnceLock<&'static Resource>,
    pub(super) versions: Versions,
    pub(super) plugins: Plugins,
}

impl ClusterProfiles {
    pub(crate) fn new(
        options: ClusterProfileOptions,
        allow_plaintext: bool,
        prober: Arc<probe::Prober>,
        plugins: PluginCounter,
    ) -> Self {
        Self {
            options,
            allow_plaintext,
            prober,
            objects: Objects::default(),
            connections: Connections::default(),
            kind: OnceLock::new(),
            versions: Versions::default(),
            plugins: Plugins::new(plugins),
        }
    }

    /// Uses this version of the API from now on; each run sets it once.
    pub(super) fn serve(&self, kind: &'static Resource) {
        self.kind.get_or_init(|| kind);
    }

    /// Whether the manager of the cluster is one of ours.
    pub(super) fn is_managed(&self, cluster: &MemberId) -> bool {
        self.objects.get(cluster).is_some_and(|object| self.is_manager_ours(&object))
    }

    fn is_manager_ours(&self, object: &Object<ClusterProfile>) -> bool {
        self.options.managers.contains(&object.body.spec.cluster_manager.name)
    }

    fn way<'a>(&'a self, object: &'a Object<ClusterProfile>) -> Result<Way<'a>, Problem> {
        let ClusterProfileOptions { secret_namespaces, providers, .. } = &self.options;
        access::way(object, secret_namespaces, providers)
    }

    fn of_manager(&self, object: &Object<ClusterProfile>) -> OfManager {
        let is_ours = self.is_manager_ours(object);
        let known = self.versions.get(&object.metadata.uid);
        let stored = &object.status.version.kubernetes;
        let stored = || (is_ours && !stored.is_empty()).then(|| stored.clone());
        OfManager { is_ours, version: known.or_else(stored) }
    }
}

impl Flavour for ClusterProfiles {
    fn name(&self) -> &'static str {
        "clusterprofile"
    }

    /// Until the version is known nothing is written.
    fn resource(&self) -> &'static Resource {
        self.kind.get().copied().unwrap_or(&CLUSTER_PROFILES[0])
    }

    /// A run may use either version.
    fn further_kinds(&self) -> &'static [Resource] {
        &CLUSTER_PROFILES
    }

    fn fingerprint(&self, cluster: &MemberId, statement: &Statement<'_>) -> u64 {
        let (Some(object), Some(published)) = (self.objects.get(cluster), statement.published)
        else {
            return 0;
        };
        status::fingerprint(published.health, &self.of_manager(&object))
    }

    fn write(&self, cluster: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite> {
        let object = self.objects.get(cluster)?;
        if self.supervision(&object) == Supervision::LeftAlone {
            // It was selected when this was submitted.
            return Some(StatusWrite::Shared(serde_json::json!({ "status": {} })));
        }
        let (published, manager) = (statement.published?, self.of_manager(&object));
        let fields = status::fields(published, statement, &manager, &object.status);
        Some(StatusWrite::Shared(fields))
    }

    fn stored(&self, cluster: &MemberId) -> Option<Health> {
        let seed = status::seed(&self.objects.get(cluster)?.status, Timestamp::now());
        seed.map(|published| published.health)
    }

    fn probed(&self, cluster: &MemberId, report: &Report) {
        if report.finding.code() == Some(Code::Unauthorized) {
            self.plugins.refused(&cluster.uid);
        }
    }

    fn keeps_checks(&self) -> bool {
        true
    }

    fn stored_check(&self, cluster: &MemberId, check: &str) -> Option<Status> {
        shared_conditions::stored_check(&self.objects.get(cluster)?.status.conditions, check)
    }

    fn removed(&self, cluster: &MemberId) {
        self.connections.remove(cluster);
        self.plugins.forget(&cluster.uid);
        self.retargeted(cluster);
    }
}

impl ObjectModel for ClusterProfiles {
    type Schema = ClusterProfile;

    fn supervision(&self, object: &Object<ClusterProfile>) -> Supervision {
        let ClusterProfileOptions { namespaces, selector, .. } = &self.options;
        let namespace = object.metadata.namespace().unwrap_or_default();
        let is_in = namespaces.is_empty() || namespaces.iter().any(|it| it == namespace);
        let label = |key: &str| object.metadata.labels.get(key).map(String::as_str);
        let is_selected = selector.as_ref().is_none_or(|selector| selector.selects(label));
        if is_in && is_selected { Supervision::Probed } else { Supervision::LeftAlone }
    }

    fn is_work(&self, old: &Object<ClusterProfile>, new: &Object<ClusterProfile>) -> bool {
        old.metadata.labels != new.metadata.labels || access::access(old) != access::access(new)
    }

    fn policy(&self, _: &Object<ClusterProfile>) -> Policy {
        self.options.policy
    }

    fn seed(&self, object: &Object<ClusterProfile>, now: Timestamp) -> Seed {
        let published = status::seed(&object.status, now);
        // The conditions have no room for announced ends.
        let announced_ends =
            if published.is_some() { AnnouncedEnds::Unknown } else { AnnouncedEnds::Nothing };
        Seed { published, announced_ends }
    }

    fn record<'a>(&self, object: &'a Object<ClusterProfile>) -> Option<&'a str> {
        status::record(&object.status)
    }

    fn shown(&self, object: &Object<ClusterProfile>) -> Option<u64> {
        status::shown(&object.status, &self.of_manager(object))
    }

    fn is_to_be_withdrawn(&self, object: &Object<ClusterProfile>, is_under_way: bool) -> bool {
        is_under_way || status::has_ours(&object.status)
    }
}

impl Resolve for ClusterProfiles {
    type Credential = ();

    const AUTHENTICATED_READ: bool = false;

    fn members(&self) -> Members<'_, ClusterProfile> {
        let Self { objects, connections, prober, .. } = self;
        Members { objects, connections, prober }
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
        way.inputs(credential, self.allow_plaintext)
    }

    fn grace(&self, object: &Object<ClusterProfile>, _: &Problem) -> Option<Duration> {
        let status = &object.status;
        let is_new = status.access_providers.is_empty() && status.credential_providers.is_empty();
        (is_new && !status::has_ours(status)).then_some(PROVIDER_GRACE)
    }

    /// The version is read again.
    fn retargeted(&self, cluster: &MemberId) {
        self.versions.forget(&cluster.uid);
    }
}
