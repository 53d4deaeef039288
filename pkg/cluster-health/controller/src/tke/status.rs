//! The status of a Cluster: its fields, the part of them whose change is worth a write, and how a
//! restarted process reads it back; which Clusters are probed, and whose phase is ours. Pure.
//!
//! All fields of ours are written each time: server-side apply removes what is left out.

use health::{CheckReport, CheckStatus, Code, Finding, Health, ProbePath, Published, Status};
use jiff::Timestamp;
use objects::Object;
use serde_json::{Value, json};

use super::facts::{
    CREDENTIAL_VALID, EXPIRING_SOON, Facts, NODES_READY, RESOURCE_SYNCED, SYNC_VERSION,
    differs_much,
};
use crate::api::tke::{Cluster, ClusterAddress, ClusterStatus, Phase, ResourceSummary};
use crate::api::{Condition, ConditionStatus};
use crate::engine::{AnnouncedEnds, Statement, Supervision, hash_of};

/// The condition about health.
const HEALTH_CHECK: &str = "HealthCheck";
/// The reason of `HealthCheck` while the cluster fails. Releases of upstream from v1.3 on write `FailedHealthCheck`.
const FAILED: &str = "HealthCheckFail";
/// The reason of `HealthCheck` while the cluster answers and has too few ready Nodes.
const NODES_NOT_READY: &str = "NodesNotReady";
/// The reason of `HealthCheck` while the cluster is locked.
const LOCKED: &str = "ClusterLocked";
/// The conditions that are ours; all others belong to installers.
const OURS: [&str; 5] =
    [HEALTH_CHECK, SYNC_VERSION, NODES_READY, RESOURCE_SYNCED, CREDENTIAL_VALID];

/// The schema of the status of Clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusSchema {
    /// The schema of our CRD, with our extensions.
    Ours,
    /// The schema of TKEStack's API server or CRD, which has no extension: it would drop them, and each
    /// write would then look like a foreign change.
    Upstream,
}

impl StatusSchema {
    /// The fields of a summary that the schema has.
    fn of(self, summary: &ResourceSummary) -> ResourceSummary {
        match self {
            Self::Ours => summary.clone(),
            Self::Upstream => ResourceSummary {
                capacity: summary.capacity.clone(),
                allocatable: summary.allocatable.clone(),
                allocated: summary.allocated.clone(),
                ..ResourceSummary::default()
            },
        }
    }
}

/// The status to write to one cluster.
pub(crate) struct Written {
    schema: StatusSchema,
    /// `None` while other actors own the phase, and with it reason and message.
    headline: Option<Headline>,
    version: String,
    conditions: Vec<Condition>,
    /// The conditions of checks, which are in no fingerprint.
    checks: Vec<Condition>,
    /// Types of the conditions of checks that the cluster has no more, where leaving them out does not remove them.
    withdrawn: Vec<String>,
    resource: Option<ResourceSummary>,
    /// None while those of the status are not ours.
    addresses: Option<Vec<ClusterAddress>>,
    /// The record of its availability; `None` where the schema has no field for it.
    record: Option<String>,
}

/// Phase, reason and message, which stand above the conditions.
struct Headline {
    /// `None` until a probe has decided.
    phase: Option<Phase>,
    reason: String,
    message: String,
}

/// The status to write to `cluster`.
pub(crate) fn write(
    cluster: &Object<Cluster>,
    statement: &Statement<'_>,
    facts: &Facts,
    schema: StatusSchema,
) -> Written {
    let status = &cluster.status;
    let check = health_check(cached(status, HEALTH_CHECK), statement);
    let others = OURS.into_iter().skip(1).filter_map(|kind| {
        let cached = cached(status, kind);
        facts.condition(kind, cached).or_else(|| cached.cloned())
    });
    let health = statement.published.filter(|_| !statement.paused).map(|it| it.health);
    let resource = facts.summary.as_ref().or(status.resource.as_ref());
    let (checks, withdrawn) = checks(statement.checks, status);
    Written {
        schema,
        headline: owns_phase(cluster).then(|| headline(status, health, check.as_ref())),
        version: facts.version.clone().unwrap_or_else(|| status.version.clone()),
        conditions: check.into_iter().chain(others).collect(),
        checks,
        withdrawn: if schema == StatusSchema::Upstream { withdrawn } else { Vec::new() },
        resource: resource.map(|summary| schema.of(summary)),
        addresses: are_ours(cluster).then(|| cluster.body.spec.addresses.clone()),
        record: statement.record.map(str::to_owned),
    }
}

impl Written {
    /// The fields to write, with the resourceVersion they rest on: another actor may own the phase now (`rule:phases-of-others-are-kept`).
    pub(crate) fn fields(&self, cluster: &Object<Cluster>) -> Value {
        let conditions = self.conditions.iter().chain(&self.checks).map(|it| json!(it));
        let withdrawn = self.withdrawn.iter().map(|kind| json!({"type": kind, "$patch": "delete"}));
        let mut status = json!({ "conditions": conditions.chain(withdrawn).collect::<Vec<_>>() });
        if let Some(Headline { phase, reason, message }) = &self.headline {
            if let Some(phase) = phase {
                status["phase"] = json!(phase);
            }
            // Empty texts take away those that others wrote.
            status["reason"] = json!(reason);
            status["message"] = json!(message);
        }
        if !self.version.is_empty() {
            status["version"] = json!(self.version);
        }
        if let Some(resource) = &self.resource {
            status["resource"] = json!(resource);
        }
        if let Some(record) = &self.record {
            status["availability"] = json!(record);
        }
        match &self.addresses {
            Some(addresses) => status["addresses"] = json!(addresses),
            // Server-side apply would remove those that the spec gave before
            None if !cluster.status.addresses.is_empty() => {
                status["addresses"] = cluster.whole()["status"]["addresses"].take();
            }
            None => {}
        }
        let version = cluster.metadata.resource_version.to_string();
        json!({ "metadata": {"resourceVersion": version}, "status": status })
    }

    /// A hash of what is worth a write: neither times, messages nor the record, and no sum that changed
    /// a little.
    pub(crate) fn fingerprint(&self, notable: Option<&ResourceSummary>) -> u64 {
        let headline = self.headline.as_ref();
        let headline = headline.map(|it| (&it.phase, &*it.reason));
        let notable = notable.map(|notable| self.schema.of(notable));
        let resource = notable.as_ref().or(self.resource.as_ref());
        let addresses = self.addresses.as_deref();
        fingerprint(headline, &self.version, &self.conditions, resource, addresses)
    }
}

/// Whether the addresses of the spec are written to the status.
fn are_ours(cluster: &Object<Cluster>) -> bool {
    !cluster.body.spec.addresses.is_empty()
}

/// The fingerprint of what the object shows. Sums that differ little from the `notable` ones count as
/// those, as in what is written.
pub(crate) fn fingerprint_of(
    cluster: &Object<Cluster>,
    notable: Option<&ResourceSummary>,
    schema: StatusSchema,
) -> u64 {
    let status = &cluster.status;
    let phase = Some(status.phase.clone()).filter(|phase| *phase != Phase::Initializing);
    let headline = owns_phase(cluster).then_some((&phase, &*status.reason));
    let ours: Vec<_> = OURS.into_iter().filter_map(|kind| cached(status, kind).cloned()).collect();
    let of_schema = |summary: &ResourceSummary| schema.of(summary);
    let (shown, notable) = (status.resource.as_ref().map(of_schema), notable.map(of_schema));
    let is_alike = |notable: &ResourceSummary| {
        shown.as_ref().is_some_and(|shown| !differs_much(notable, shown))
    };
    let resource = notable.filter(is_alike).or(shown);
    let addresses = are_ours(cluster).then_some(&status.addresses[..]);
    fingerprint(headline, &status.version, &ours, resource.as_ref(), addresses)
}

fn fingerprint(
    headline: Option<(&Option<Phase>, &str)>,
    version: &str,
    conditions: &[Condition],
    resource: Option<&ResourceSummary>,
    addresses: Option<&[ClusterAddress]>,
) -> u64 {
    let conditions: Vec<_> =
        conditions.iter().map(|it| (&it.kind, it.status.to_string(), &it.reason)).collect();
    let timeless =
        resource.map(|resource| ResourceSummary { observed_time: None, ..resource.clone() });
    hash_of(&(headline, version, addresses, conditions, json!(timeless).to_string()))
}

/// The health that a process which takes the cluster over reads from its object
/// (`rule:a-restart-changes-nothing`).
pub(crate) fn seed(cluster: &Object<Cluster>, now: Timestamp) -> Option<Published> {
    let status = &cluster.status;
    let condition = cached(status, HEALTH_CHECK);
    let said = condition.map(|condition| &condition.status);
    let unknown = condition.filter(|it| it.status == ConditionStatus::Unknown).and_then(|it| {
        let health = Health::from_ready_reason(&it.reason)?;
        Some((it, health))
    });
    if let Some((it, health @ (Health::HubPartition | Health::HeartbeatStopped))) = unknown {
        let since = it.last_transition_time.unwrap_or(now);
        let probed = it.last_probe_time.map(|probed| probed.min(now));
        return Some(Published::seed(health, since, since, probed));
    }
    let well = match (&status.phase, said) {
        // Where phase and condition differ the first probe decides: neither was found by a probe of
        // ours.
        (_, Some(ConditionStatus::Unknown | ConditionStatus::Other(_)))
        | (Phase::Running, Some(ConditionStatus::False))
        | (Phase::Failed, Some(ConditionStatus::True)) => return None,
        (Phase::Running | Phase::Failed, _) => status.phase == Phase::Running,
        (_, said) => *said? == ConditionStatus::True,
    };
    let health = Health::from_ready(if well { Status::True } else { Status::False });
    let agreeing =
        condition.filter(|_| said.is_some_and(|said| said.to_string() == health.ready().as_str()));
    let since = agreeing.and_then(|condition| condition.last_transition_time).unwrap_or(now);
    let probed = condition.and_then(|condition| condition.last_probe_time);
    // Upstream writes times of the next check.
    let probed = probed.map(|probed| probed.min(now));
    let nodes = agreeing.is_some_and(|it| !well && it.reason == NODES_NOT_READY);
    let finding = nodes.then(|| Finding::failed(Code::NodesNotReady, ProbePath::default()));
    Some(Published { finding, ..Published::seed(health, since, since, probed) })
}

/// Whether a cluster was published as failing because of its Nodes.
pub(crate) fn lacks_nodes(published: Option<&Published>) -> bool {
    let finding = published.and_then(|published| published.finding);
    finding.and_then(Finding::code) == Some(Code::NodesNotReady)
}

/// The near end that the object announces, as it was written.
pub(crate) fn announced_ends(cluster: &Object<Cluster>) -> AnnouncedEnds {
    let condition = cached(&cluster.status, CREDENTIAL_VALID);
    let told = condition.filter(|condition| condition.reason == EXPIRING_SOON);
    told.map_or(AnnouncedEnds::Nothing, |told| AnnouncedEnds::Shown(told.message.as_str().into()))
}

fn cached<'a>(status: &'a ClusterStatus, kind: &str) -> Option<&'a Condition> {
    Condition::find(&status.conditions, kind)
}

fn health_check(cached: Option<&Condition>, statement: &Statement<'_>) -> Option<Condition> {
    let (status, reason, message, since, probed) = if statement.paused {
        let message = "the cluster is locked and not probed";
        let probed = cached.and_then(|cached| cached.last_probe_time);
        (Status::Unknown, LOCKED, message, statement.now.wall, probed)
    } else {
        let Some(published) = statement.published else { return cached.cloned() };
        let (status, since) = (published.ready.status, published.ready.since);
        (status, reason(published), statement.message, since, published.probed)
    };
    let status = ConditionStatus::from(status);
    let before = cached.and_then(|cached| Some((&cached.status, cached.last_transition_time?)));
    let since = match before {
        Some((same, before)) if *same == status && statement.paused => before,
        // The object said something else after that, as while it was locked.
        Some((other, before)) if *other != status && before > since => statement.now.wall,
        _ => since,
    };
    Some(Condition::new(HEALTH_CHECK, (status, since), probed, (reason, message)))
}

/// The conditions of checks, and the types of those that the object has besides: checks that are gone. While it is not
/// known which checks there are, those of the object stay.
fn checks(checks: Option<&[CheckReport]>, stored: &ClusterStatus) -> (Vec<Condition>, Vec<String>) {
    let is_of_check =
        |it: &&Condition| CheckStatus::has_reason(&it.reason) && !OURS.contains(&&*it.kind);
    let of_checks = stored.conditions.iter().filter(is_of_check);
    let Some(checks) = checks else { return (of_checks.cloned().collect(), Vec::new()) };
    let is_gone = |it: &&Condition| checks.iter().all(|check| *check.name != *it.kind);
    let gone = of_checks.filter(is_gone).map(|it| it.kind.clone()).collect();
    (checks.iter().filter_map(|check| of_check(check, stored)).collect(), gone)
}

/// The condition about a check: that of the object until this process has a status.
fn of_check(check: &CheckReport, stored: &ClusterStatus) -> Option<Condition> {
    let cached = cached(stored, &check.name);
    let Some(status) = check.status else { return cached.cloned() };
    let (reason, status) = (status.reason(), (status.status(), check.since));
    let new = Condition::new(&check.name, status, check.probed, (reason, &check.message));
    Some(new.kept_since(cached))
}

fn reason(published: &Published) -> &'static str {
    match published.health {
        Health::Ready => "",
        Health::Unknown | Health::HubPartition | Health::HeartbeatStopped => {
            published.health.ready_reason()
        }
        Health::NotReady | Health::Unreachable | Health::Malformed => {
            match published.finding.and_then(Finding::code) {
                Some(Code::NodesNotReady) => NODES_NOT_READY,
                _ => FAILED,
            }
        }
    }
}

fn headline(status: &ClusterStatus, health: Option<Health>, check: Option<&Condition>) -> Headline {
    let text = |of: fn(&Condition) -> &String| check.map(|it| of(it).clone()).unwrap_or_default();
    match health {
        Some(Health::Ready) => {
            Headline { phase: Some(Phase::Running), reason: String::new(), message: String::new() }
        }
        Some(Health::NotReady | Health::Unreachable | Health::Malformed) => Headline {
            phase: Some(Phase::Failed),
            reason: text(|it| &it.reason),
            message: text(|it| &it.message),
        },
        // Unknown: keep the last phase, reason and message.
        Some(Health::Unknown | Health::HubPartition | Health::HeartbeatStopped) | None => {
            Headline {
                phase: Some(status.phase.clone()).filter(|phase| *phase != Phase::Initializing),
                reason: status.reason.clone(),
                message: status.message.clone(),
            }
        }
    }
}

#[cfg(test)]
mod tests;

/// The type of clusters that TKEStack did not create.
const IMPORTED: &str = "Imported";

/// Whether a Cluster is probed.
pub(crate) fn supervision(cluster: &Object<Cluster>) -> Supervision {
    let status = &cluster.status;
    let live = !cluster.metadata.deleting()
        && match status.phase {
            Phase::Terminating | Phase::Waiting | Phase::Idling | Phase::Confined => false,
            Phase::Initializing => is_imported(cluster),
            _ => true,
        };
    match (live, status.locked) {
        (false, _) => Supervision::LeftAlone,
        (true, Some(true)) => Supervision::Locked,
        (true, _) => Supervision::Probed,
    }
}

/// Whether a Cluster is imported: nothing sets it up, so the first probe decides about its phase.
pub(crate) fn is_imported(cluster: &Object<Cluster>) -> bool {
    cluster.body.spec.kind == IMPORTED
}

/// Whether health may change the phase: other phases belong to the actor that works on the cluster
/// (`rule:phases-of-others-are-kept`).
pub(crate) fn owns_phase(cluster: &Object<Cluster>) -> bool {
    match cluster.status.phase {
        Phase::Running | Phase::Failed => true,
        Phase::Initializing => is_imported(cluster),
        _ => false,
    }
}

#[cfg(test)]
mod supervision_tests {
    use super::*;
    use crate::tke::testing::cluster;

    #[test]
    fn clusters_that_others_set_up_take_down_or_put_aside_are_left_alone() {
        let rows = [
            ("Running", "Baremetal", Supervision::Probed, true),
            ("Failed", "Baremetal", Supervision::Probed, true),
            ("Initializing", "Baremetal", Supervision::LeftAlone, false),
            ("Initializing", "Imported", Supervision::Probed, true),
            ("", "Imported", Supervision::Probed, true),
            ("Upgrading", "Baremetal", Supervision::Probed, false),
            ("Upscaling", "Baremetal", Supervision::Probed, false),
            ("Downscaling", "Baremetal", Supervision::Probed, false),
            ("Recovering", "Baremetal", Supervision::Probed, false),
            ("SomethingNew", "Baremetal", Supervision::Probed, false),
            ("Terminating", "Imported", Supervision::LeftAlone, false),
            ("Waiting", "Imported", Supervision::LeftAlone, false),
            ("Idling", "Imported", Supervision::LeftAlone, false),
            ("Confined", "Imported", Supervision::LeftAlone, false),
        ];
        for (phase, kind, expected, phase_is_ours) in rows {
            let mut cluster = cluster(|object| {
                object["spec"]["type"] = kind.into();
                object["status"]["phase"] = phase.into();
            });
            assert_eq!(supervision(&cluster), expected, "{phase} {kind}");
            assert_eq!(owns_phase(&cluster), phase_is_ours, "{phase} {kind}");
            cluster.status.locked = Some(true);
            let locked = match expected {
                Supervision::Probed => Supervision::Locked,
                other => other,
            };
            assert_eq!(supervision(&cluster), locked, "locked {phase} {kind}");
            cluster.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
            assert_eq!(supervision(&cluster), Supervision::LeftAlone, "deleted {phase} {kind}");
        }
    }
}
