//! [`KubeFed`]: what the engine asks of this flavour, and what is remembered of each member.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use health::{Health, Policy, Report};
use jiff::Timestamp;
use kube_api::Resource;
use objects::Object;
use parking_lot::Mutex;
use probe::{Inputs, Probed, Problem};
use resilience::wall_now;

use super::topology::{DuplicateClusters, Identity, Topology};
use super::upstream_metrics::UpstreamMetrics;
use super::{access, status};
use crate::api::kubefed::{
    ClusterHealthCheck, KUBEFED_CLUSTERS, KubeFedCluster, KubeFedClusterStatus,
};
use crate::engine::facts::FactStore;
use crate::engine::{
    Connections, CredentialSource, Flavour, MemberId, Members, ObjectModel, Objects, Resolve, Seed,
    Statement, StatusWrite, hash_of,
};
use crate::options::KubeFedOptions;
use crate::secret_data::SecretData;

/// Between two reads of where a member is, give or take a tenth.
const SURVEY_EVERY: Duration = Duration::from_secs(600);

/// A constant has no address to refer to.
static RESOURCE: Resource = KUBEFED_CLUSTERS;

/// The members of KubeFed, in one run of the controller.
pub(crate) struct KubeFed {
    pub(super) options: KubeFedOptions,
    /// Whether tokens may be sent over plain http.
    pub(super) allow_plaintext: bool,
    pub(super) prober: Arc<probe::Prober>,
    pub(super) objects: Objects<KubeFedCluster>,
    pub(super) connections: Connections,
    /// By the namespace of the KubeFedConfig that says so; elsewhere the flags hold.
    policies: Mutex<HashMap<Box<str>, Policy>>,
    surveys: FactStore<Survey>,
    duplicates: Mutex<DuplicateClusters>,
    /// `None` when they are not wanted.
    pub(super) upstream_metrics: Option<UpstreamMetrics>,
}

/// Zones and region of a member, and whether the last read of them failed.
#[derive(Default)]
struct Survey {
    topology: Option<Topology>,
    failed: bool,
}

impl KubeFed {
    /// The flavour for one run of the controller.
    pub(crate) fn new(
        options: KubeFedOptions,
        allow_plaintext: bool,
        prober: Arc<probe::Prober>,
        upstream_metrics: Option<UpstreamMetrics>,
    ) -> Self {
        Self {
            options,
            allow_plaintext,
            prober,
            objects: Objects::default(),
            policies: Mutex::default(),
            connections: Connections::default(),
            surveys: FactStore::new(SURVEY_EVERY, SURVEY_EVERY),
            duplicates: Mutex::default(),
            upstream_metrics,
        }
    }

    /// Takes in what the KubeFedConfig of a namespace says, which holds there and nowhere else;
    /// returns its mistakes, and settings that are likely mistakes.
    pub(super) fn configure(
        &self,
        namespace: &str,
        config: Option<&ClusterHealthCheck>,
    ) -> Vec<String> {
        let (policy, mut wrong) = access::policy(&self.options.policy, config);
        let mut policies = self.policies.lock();
        match config {
            Some(_) => {
                policies.insert(namespace.into(), policy);
                wrong.extend(access::odd(&policy));
            }
            None => drop(policies.remove(namespace)),
        }
        wrong
    }

    /// How the members in this namespace are watched over now.
    pub(super) fn policy_in(&self, namespace: &str) -> Policy {
        self.policies.lock().get(namespace).copied().unwrap_or(self.options.policy)
    }

    /// The client of a member as it is reached now.
    pub(super) fn client(&self, cluster: &MemberId) -> Option<Arc<probe::Client>> {
        self.connections.client(cluster)
    }

    /// The members whose zones are due to be read; they count as read from now on.
    pub(super) fn due_for_survey(&self, is_ready: impl Fn(&MemberId) -> bool) -> Vec<MemberId> {
        let mut due = self.connections.reachable();
        due.retain(|cluster| is_ready(cluster) && self.surveys.begin(&cluster.uid));
        due
    }

    /// Takes in what was read by `client`; whether it is worth an event, which what the object said
    /// before this process is not (`rule:a-restart-changes-nothing`). Nothing found, or a failure,
    /// leaves what was known. Of a member that is reached by another client by now it is read again.
    pub(super) fn surveyed(
        &self,
        cluster: &MemberId,
        client: &Arc<probe::Client>,
        found: &Result<Option<Topology>, String>,
    ) -> bool {
        let now = self.client(cluster);
        let shown = self.objects.get(cluster);
        let shows = |topology: &Topology| {
            let status = shown.as_ref().map(|object| &object.status);
            status.is_some_and(|it| it.zones == topology.zones && it.region == topology.region)
        };
        if !now.is_some_and(|now| Arc::ptr_eq(&now, client)) {
            self.surveys.expire(&cluster.uid);
            return false;
        }
        let is_news = self.surveys.take(&cluster.uid, |survey| {
            let had_failed = std::mem::replace(&mut survey.failed, found.is_err());
            match found {
                Err(_) => !had_failed,
                Ok(None) => false,
                Ok(Some(topology)) => {
                    let is_first = survey.topology.is_none();
                    let before = survey.topology.replace(topology.clone());
                    before.as_ref() != Some(topology) && !(is_first && shows(topology))
                }
            }
        });
        is_news.unwrap_or_default()
    }

    /// Takes in which cluster a member was found to be by `client`; the other members that are the
    /// same cluster, when that is news.
    pub(super) fn identified(
        &self,
        cluster: &MemberId,
        client: &Arc<probe::Client>,
        identity: Identity,
    ) -> Vec<Arc<str>> {
        match self.client(cluster) {
            Some(now) if Arc::ptr_eq(&now, client) => {
                self.duplicates.lock().found(cluster, identity)
            }
            _ => Vec::new(),
        }
    }

    /// Zones and region of the object, with what was read since.
    fn held(&self, object: &Object<KubeFedCluster>) -> KubeFedClusterStatus {
        let topology = self.surveys.get(&object.metadata.uid, |survey| survey.topology.clone());
        let (zones, region) = match topology {
            Some(topology) => (topology.zones, topology.region),
            None => (object.status.zones.clone(), object.status.region.clone()),
        };
        KubeFedClusterStatus { zones, region, ..KubeFedClusterStatus::default() }
    }
}

impl Flavour for KubeFed {
    fn name(&self) -> &'static str {
        "kubefed"
    }

    fn resource(&self) -> &'static Resource {
        &RESOURCE
    }

    fn fingerprint(&self, cluster: &MemberId, statement: &Statement<'_>) -> u64 {
        let (Some(object), Some(published)) = (self.objects.get(cluster), statement.published)
        else {
            return 0;
        };
        status::fingerprint(published.health, &self.held(&object))
    }

    fn write(&self, cluster: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite> {
        let object = self.objects.get(cluster)?;
        let mut held = self.held(&object);
        held.availability = self.objects.kept(statement.record, &RESOURCE).map(str::to_owned);
        let message = status::with_checks(statement.message, statement.checks.unwrap_or_default());
        let fields = status::fields(statement.published?, &message, &held);
        Some(StatusWrite::of(&object, fields, self.objects.schema_is_ours()))
    }

    fn stored(&self, cluster: &MemberId) -> Option<Health> {
        let seed = status::seed(&self.objects.get(cluster)?.status, wall_now());
        seed.map(|published| published.health)
    }

    fn probed(&self, _: &MemberId, report: &Report) {
        if let Some(metrics) = &self.upstream_metrics {
            metrics.probed(report.took);
        }
    }

    fn removed(&self, cluster: &MemberId) {
        self.connections.remove(cluster);
        self.retargeted(cluster);
    }
}

impl ObjectModel for KubeFed {
    type Schema = KubeFedCluster;

    fn members(&self) -> Members<'_, KubeFedCluster> {
        let Self { objects, connections, prober, .. } = self;
        Members { objects, connections, prober, plugins: None }
    }

    fn is_work(&self, old: &Object<KubeFedCluster>, new: &Object<KubeFedCluster>) -> bool {
        old.body.spec != new.body.spec || old.metadata.deleting() != new.metadata.deleting()
    }

    fn access(&self, object: &Object<KubeFedCluster>) -> u64 {
        hash_of(&object.body.spec)
    }

    fn policy(&self, object: &Object<KubeFedCluster>) -> Policy {
        self.policy_in(object.metadata.namespace().unwrap_or_default())
    }

    fn seed(&self, object: &Object<KubeFedCluster>, now: Timestamp) -> Seed {
        Seed::without_ends(status::seed(&object.status, now))
    }

    fn record<'a>(&self, object: &'a Object<KubeFedCluster>) -> Option<&'a str> {
        object.status.availability.as_deref()
    }

    fn shown(&self, object: &Object<KubeFedCluster>) -> Option<u64> {
        status::shown(&object.status, wall_now())
    }
}

impl Resolve for KubeFed {
    type Credential = ();

    fn addresses(&self, object: &Object<KubeFedCluster>) -> Vec<Box<str>> {
        vec![access::endpoint(object).into()]
    }

    fn source(
        &self,
        object: &Object<KubeFedCluster>,
        _: Option<&()>,
    ) -> Result<CredentialSource, Problem> {
        Ok(CredentialSource::secret(access::secret_key(object)))
    }

    fn inputs(
        &self,
        object: &Object<KubeFedCluster>,
        _: Option<()>,
        secret: Option<SecretData>,
    ) -> Result<Inputs, Problem> {
        access::inputs(object, secret.as_ref(), self.allow_plaintext)
    }

    /// Zones and region are read again.
    fn retargeted(&self, cluster: &MemberId) {
        self.surveys.forget(&cluster.uid);
        self.duplicates.lock().forget(&cluster.uid);
    }

    fn judge(&self, _: &MemberId, probed: Probed) -> Report {
        if let Some(metrics) = &self.upstream_metrics {
            metrics.connected(&probed.attempts);
        }
        probed.report
    }
}

#[cfg(test)]
mod tests;
