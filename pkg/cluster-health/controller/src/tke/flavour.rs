//! [`Tke`]: TKEStack's Clusters, as the engine sees them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use health::{Code, Finding, Health, Policy, ProbePath, Report, Status};
use jiff::Timestamp;
use kube_api::Resource;
use objects::Object;
use probe::{Inputs, Probed, Problem};
use resilience::wall_now;
use workqueue::WorkQueue;

use super::access::{access, addresses, inputs, secret_key};
use super::cluster_details::DetailStore;
use super::credentials::reference;
use super::details::{DetailTask, after_probe};
use super::facts::Facts;
use super::machines::KIND;
use super::status::{
    StatusSchema, announced_ends, fingerprint_of, is_imported, lacks_nodes, seed, supervision,
    write,
};
use super::summary_metrics::SummaryMetrics;
use crate::api::Condition;
use crate::api::tke::{self, CLUSTERS, ClusterCredential, NodeCounts, Phase};
use crate::engine::{
    Contact, CredentialSource, Flavour, FlavourRegistry, MemberId, Members, ObjectModel, Objects,
    Resolve, Seed, Statement, StatusWrite, Supervision, ends_soon, identity,
};
use crate::options::TkeOptions;
use crate::secret_data::SecretData;

/// How long an imported cluster may wait for its credential before it is published as malformed.
const CREDENTIAL_GRACE: Duration = Duration::from_secs(60);

/// The flavour `tke`.
pub(crate) struct Tke {
    pub(crate) options: Arc<TkeOptions>,
    pub(crate) prober: Arc<probe::Prober>,
    pub(crate) details: Arc<DetailStore>,
    pub(crate) metrics: SummaryMetrics,
    pub(super) objects: Objects<tke::Cluster>,
    /// Set when it begins to follow its objects.
    followed: OnceLock<Followed>,
}

/// The registry and queues of the run; set when it begins.
struct Followed {
    registry: FlavourRegistry,
    tasks: WorkQueue<DetailTask>,
    /// Names of Clusters whose Machines have to be observed.
    machines: WorkQueue<Arc<str>>,
}

impl Tke {
    pub(crate) fn new(
        options: TkeOptions,
        prober: Arc<probe::Prober>,
        metrics: SummaryMetrics,
    ) -> Self {
        let (options, details) = (Arc::new(options), Arc::default());
        metrics.show(&details);
        Self {
            options,
            prober,
            details,
            metrics,
            objects: Objects::default(),
            followed: OnceLock::new(),
        }
    }

    /// Called once, before any cluster is known to the engine.
    pub(super) fn follow(
        &self,
        registry: FlavourRegistry,
        tasks: WorkQueue<DetailTask>,
        machines: WorkQueue<Arc<str>>,
    ) {
        let followed = Followed { registry, tasks, machines };
        // Each run creates its flavours, so it is never set.
        let _fresh = self.followed.set(followed);
    }

    /// The schema of the status of Clusters at this moment.
    pub(super) fn schema(&self) -> StatusSchema {
        if self.objects.schema_is_ours() { StatusSchema::Ours } else { StatusSchema::Upstream }
    }

    fn facts(&self, cluster: &MemberId) -> Facts {
        self.details.known(cluster, |entry| entry.facts.clone()).unwrap_or_default()
    }
}

impl Flavour for Tke {
    fn name(&self) -> &'static str {
        "tke"
    }

    fn resource(&self) -> &'static Resource {
        static RESOURCE: Resource = CLUSTERS;
        &RESOURCE
    }

    fn further_kinds(&self) -> &'static [Resource] {
        &KIND
    }

    fn fingerprint(&self, cluster: &MemberId, statement: &Statement<'_>) -> u64 {
        let Some(object) = self.objects.get(cluster) else { return 0 };
        let facts = self.facts(cluster);
        write(&object, statement, &facts, self.schema()).fingerprint(facts.notable.as_ref())
    }

    fn write(&self, cluster: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite> {
        let (object, schema) = (self.objects.get(cluster)?, self.schema());
        // Another actor may have taken it over since it was registered.
        if supervision(&object) == Supervision::LeftAlone {
            return None;
        }
        let record = self.objects.kept(statement.record, self.resource());
        let statement = &Statement { record, ..*statement };
        let fields = write(&object, statement, &self.facts(cluster), schema).fields(&object);
        Some(StatusWrite::of(&object, fields, schema == StatusSchema::Ours))
    }

    fn stored(&self, cluster: &MemberId) -> Option<Health> {
        seed(&*self.objects.get(cluster)?, wall_now()).map(|published| published.health)
    }

    fn keeps_checks(&self) -> bool {
        true
    }

    fn stored_check(&self, cluster: &MemberId, check: &str) -> Option<Status> {
        let object = self.objects.get(cluster)?;
        Condition::find(&object.status.conditions, check)?.status.known()
    }

    fn nodes(&self, cluster: &MemberId, max_age: Duration) -> Option<(usize, usize)> {
        let (_, latest) = self.details.target(cluster)?;
        let latest = latest.try_lock().ok()?;
        let (_, totals) = latest.as_ref().filter(|(begun, _)| begun.elapsed() < max_age)?;
        let NodeCounts { total, ready, .. } = totals.counts;
        Some((usize::try_from(ready).ok()?, usize::try_from(total).ok()?))
    }

    fn tells_offline(&self) -> bool {
        false
    }

    fn probed(&self, cluster: &MemberId, report: &Report) {
        let Some(followed) = self.followed.get() else { return };
        let readiness = followed.registry.readiness(cluster);
        let contact = self.details.connections.client(cluster).map(|it| Contact::from(&*it));
        let known = self.details.known(cluster, |entry| {
            if entry.machines_saw != readiness && !self.options.machine_period.is_zero() {
                followed.machines.add(Arc::clone(&cluster.key));
            }
            let now = wall_now();
            match (authorization(report), contact.and_then(|it| expiring(&it, now))) {
                (Some((None, _)), Some(message)) => entry.facts.expiring(message, now),
                (Some((refusal, message)), _) => entry.facts.authorized(refusal, message, now),
                (None, _) => {}
            }
            let answers = entry.answers;
            if answers { after_probe(cluster, entry, contact, &self.options) } else { Vec::new() }
        });
        for task in known.unwrap_or_default() {
            followed.tasks.add(task);
        }
        followed.registry.facts_changed(cluster);
    }

    fn removed(&self, cluster: &MemberId) {
        self.details.remove(cluster);
        // Its Machines belong to another replica now, or to none.
        if let Some(followed) = self.followed.get() {
            followed.machines.add(Arc::clone(&cluster.key));
        }
    }
}

impl ObjectModel for Tke {
    type Schema = tke::Cluster;

    fn members(&self) -> Members<'_, tke::Cluster> {
        let Self { objects, details, prober, .. } = self;
        Members { objects, connections: &details.connections, prober, plugins: None }
    }

    fn supervision(&self, object: &Object<tke::Cluster>) -> Supervision {
        supervision(object)
    }

    fn access(&self, object: &Object<tke::Cluster>) -> u64 {
        access(object)
    }

    fn policy(&self, _: &Object<tke::Cluster>) -> Policy {
        self.options.policy
    }

    fn seed(&self, object: &Object<tke::Cluster>, now: Timestamp) -> Seed {
        Seed { published: seed(object, now), announced_ends: announced_ends(object) }
    }

    fn record<'a>(&self, object: &'a Object<tke::Cluster>) -> Option<&'a str> {
        object.status.availability.as_deref()
    }

    fn shown(&self, object: &Object<tke::Cluster>) -> Option<u64> {
        let facts = self.facts(&identity(object));
        Some(fingerprint_of(object, facts.notable.as_ref(), self.schema()))
    }
}

impl Resolve for Tke {
    type Credential = ClusterCredential;

    const AUTHENTICATED_READ: bool = true;

    fn addresses(&self, object: &Object<tke::Cluster>) -> Vec<Box<str>> {
        let addresses = addresses(object).unwrap_or_default();
        addresses.iter().map(|address| address.to_string().into()).collect()
    }

    fn reference(&self, object: &Object<tke::Cluster>) -> Option<Arc<str>> {
        reference(object)
    }

    fn source(
        &self,
        object: &Object<tke::Cluster>,
        credential: Option<&ClusterCredential>,
    ) -> Result<CredentialSource, Problem> {
        let Some(credential) = credential else { return Ok(CredentialSource::Nothing) };
        let key = secret_key(object, credential, self.options.secret_namespace.as_deref())?;
        addresses(object)?;
        Ok(CredentialSource::secret(key))
    }

    fn inputs(
        &self,
        object: &Object<tke::Cluster>,
        credential: Option<ClusterCredential>,
        secret: Option<SecretData>,
    ) -> Result<Inputs, Problem> {
        let credential = credential.unwrap_or_default();
        inputs(addresses(object)?, credential, secret, self.options.insecure_without_ca)
    }

    /// A new imported cluster may wait for its credential: users create one of the two objects first.
    fn grace(&self, object: &Object<tke::Cluster>, problem: &Problem) -> Option<Duration> {
        let is_new = is_imported(object) && object.status.phase == Phase::Initializing;
        (is_new && problem.code() == Code::SecretMissing).then_some(CREDENTIAL_GRACE)
    }

    /// `rule:a-restart-changes-nothing`: the first probe comes before the first list.
    fn arrives(&self, cluster: &MemberId, object: &Object<tke::Cluster>) {
        let lacks_nodes = lacks_nodes(seed(object, wall_now()).as_ref());
        self.details.with(cluster, |entry| {
            if lacks_nodes {
                entry.facts.enough_nodes = Some(false);
            }
        });
    }

    fn retargeted(&self, cluster: &MemberId) {
        self.details.retarget(cluster);
    }

    fn judge(&self, cluster: &MemberId, Probed { mut report, .. }: Probed) -> Report {
        let finding = report.finding;
        let enough_nodes = self.details.known(cluster, |entry| {
            // rule:what-we-could-not-ask-changes-nothing
            if !finding.is_void() {
                entry.answers = finding.is_ok();
            }
            entry.facts.enough_nodes
        });
        if self.options.ready_requires_nodes {
            report.finding = judged(finding, enough_nodes.flatten());
        }
        report
    }
}

/// Turns a success into a failure while the cluster has too few ready Nodes; `None` before its Nodes
/// were listed.
fn judged(finding: Finding, enough_nodes: Option<bool>) -> Finding {
    if finding.is_ok() && enough_nodes == Some(false) {
        return Finding::failed(Code::NodesNotReady, finding.path());
    }
    finding
}

/// The end that is near, of the credential or else of the certificate of the server.
fn expiring(contact: &Contact, now: Timestamp) -> Option<String> {
    let ends =
        [("the credential", contact.credential), ("the serving certificate", contact.certificate)];
    ends.into_iter().find_map(|(what, lifetime)| {
        let lifetime = lifetime?;
        ends_soon(what, lifetime, lifetime.stage(now))
    })
}

/// Whether the cluster took our credential, and what it said if not; `None` when the probe did not
/// get that far.
fn authorization(report: &Report) -> Option<(Option<&'static str>, String)> {
    let finding = report.finding;
    match finding.code() {
        None => Some((None, String::new())),
        Some(Code::Unauthorized) => Some((Some("Unauthorized"), finding.to_string())),
        // Some clusters hide their health from us and still let us in.
        Some(Code::Forbidden) if finding.path() == ProbePath::Namespaces => {
            Some((Some("Forbidden"), finding.to_string()))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use health::{Lifetime, ProbePath};

    use super::*;

    #[test]
    fn a_credential_or_a_certificate_that_ends_soon_is_told_in_the_condition() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let ending = |text: &str| Some(Lifetime { from: None, to: text.parse().unwrap() });
        let (near, far) = (ending("2026-11-22T00:00:00Z"), ending("2027-11-22T00:00:00Z"));
        for (credential, certificate, told) in [
            (far, far, None),
            (None, None, None),
            (
                near,
                near,
                Some("the credential expires within a day: 2026-11-22T00:00:00Z; renew it"),
            ),
            (
                far,
                near,
                Some(
                    "the serving certificate expires within a day: 2026-11-22T00:00:00Z; renew it",
                ),
            ),
        ] {
            let contact = Contact { credential, certificate, ..Contact::default() };
            assert_eq!(expiring(&contact, now).as_deref(), told);
        }
    }

    #[test]
    fn a_cluster_that_answers_fails_while_it_has_too_few_nodes() {
        let path = ProbePath::Namespaces;
        let (well, lost) = (Finding::ok(path), Finding::failed(Code::Timeout, path));
        for (finding, enough, code) in [
            (well, None, None),
            (well, Some(true), None),
            (well, Some(false), Some(Code::NodesNotReady)),
            (lost, Some(false), Some(Code::Timeout)),
        ] {
            assert_eq!(judged(finding, enough).code(), code, "{enough:?}");
        }
    }
}
