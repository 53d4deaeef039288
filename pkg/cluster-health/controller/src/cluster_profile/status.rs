//! The part of a ClusterProfile's status that is ours: written from the published health, and read back. Pure.

use health::{Health, Published, Record, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::cluster_profile::{ClusterProfileStatus, Property};
use crate::api::{Condition, ConditionStatus};
use crate::engine::{OWN_PREFIX, Statement};

const HEALTHY: &str = "infra-controller-manager/Healthy";
const REACHABLE: &str = "infra-controller-manager/Reachable";
const WITHIN_OBJECTIVE: &str = "infra-controller-manager/WithinObjective";
const PROBE: &str = "infra-controller-manager/probe";
const CONTROL_PLANE: &str = "ControlPlaneHealthy";

/// What is written in the name of the cluster manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OfManager {
    /// The manager of the profile is one of ours.
    pub(super) is_ours: bool,
    /// The version of the cluster, as it was read or as its status has it.
    pub(super) version: Option<String>,
}

/// The fields of the status.
pub(super) fn fields(
    published: &Published,
    statement: &Statement<'_>,
    manager: &OfManager,
    stored: &ClusterProfileStatus,
) -> Value {
    let Statement { message, within, now, .. } = *statement;
    let Published { health, ready, offline, probed, .. } = published;
    let condition = |kind: &str, status: Status, since, reason: &str, message: &str| Condition {
        kind: kind.to_owned(),
        status: status.into(),
        last_probe_time: None,
        last_transition_time: Some(since),
        reason: reason.to_owned(),
        // These conditions have no field for the time of the probe.
        message: match probed {
            Some(probed) => format!("{message}; probed {}", rfc3339(*probed)),
            None => message.to_owned(),
        },
    };
    let reachable = reachable(*health);
    let about = match reachable {
        Status::True => "the cluster is reachable",
        Status::False => "the cluster is not reachable",
        Status::Unknown => message,
    };
    let (ready_reason, reason) = (health.ready_reason(), health.offline_reason());
    let mut conditions = vec![
        condition(HEALTHY, ready.status, ready.since, ready_reason, message),
        condition(REACHABLE, reachable, offline.since, reason, about),
    ];
    if let Some(within) = within {
        let stored = Condition::find(&stored.conditions, WITHIN_OBJECTIVE);
        let same = stored.filter(|it| it.status == within.status.into());
        conditions.push(Condition {
            kind: WITHIN_OBJECTIVE.to_owned(),
            status: within.status.into(),
            last_probe_time: None,
            last_transition_time: same.and_then(|it| it.last_transition_time).or(Some(now.wall)),
            reason: within.reason.to_owned(),
            // The record is at its end.
            message: within.message.clone(),
        });
    }
    let mut status = json!({});
    if manager.is_ours {
        conditions.push(condition(CONTROL_PLANE, ready.status, ready.since, ready_reason, message));
        if let Some(version) = &manager.version {
            status["version"] = json!({"kubernetes": version});
        }
    }
    status["conditions"] = json!(conditions);
    let observed = published.finding.zip(*probed).map(|(finding, probed)| Property {
        name: PROBE.to_owned(),
        value: finding.code().map_or_else(|| "ok".to_owned(), |code| code.to_string()),
        last_observed_time: Some(probed),
    });
    // Without a finding of this process the last one is still the last.
    let stored = stored.properties.iter().find(|it| it.name == PROBE && !it.value.is_empty());
    if let Some(property) = observed.as_ref().or(stored) {
        status["properties"] = json!([property]);
    }
    json!({ "status": status })
}

fn rfc3339(time: Timestamp) -> impl std::fmt::Display {
    time.strftime("%Y-%m-%dT%H:%M:%SZ")
}

fn reachable(health: Health) -> Status {
    match health.offline() {
        Status::True => Status::False,
        Status::False => Status::True,
        Status::Unknown => Status::Unknown,
    }
}

/// A hash of what matters in the status.
pub(super) fn fingerprint(health: Health, manager: &OfManager) -> u64 {
    let ready = (ConditionStatus::from(health.ready()), health.ready_reason());
    let reachable = (ConditionStatus::from(reachable(health)), health.offline_reason());
    hash(&ready, &reachable, manager)
}

/// The fingerprint of what an object shows; `None` when it is not all that is published. What another field
/// manager may own is not looked at: it could differ without end, and would be written as often. It comes back
/// with the next heartbeat.
pub(super) fn shown(status: &ClusterProfileStatus, manager: &OfManager) -> Option<u64> {
    let find = |kind: &str| {
        let found = Condition::find(&status.conditions, kind)?;
        Some((found.status.clone(), &*found.reason))
    };
    Some(hash(&find(HEALTHY)?, &find(REACHABLE)?, manager))
}

type State<'a> = (ConditionStatus, &'a str);

fn hash(ready: &State<'_>, reachable: &State<'_>, manager: &OfManager) -> u64 {
    health::hash(&format!("{ready:?} {reachable:?} {manager:?}"))
}

/// The health that an object shows; `None` when it shows none.
pub(super) fn seed(status: &ClusterProfileStatus, now: Timestamp) -> Option<Published> {
    let healthy = Condition::find(&status.conditions, HEALTHY)?;
    let reachable = Condition::find(&status.conditions, REACHABLE);
    let ready = match healthy.status {
        ConditionStatus::True => Status::True,
        ConditionStatus::False => Status::False,
        ConditionStatus::Unknown => Status::Unknown,
        ConditionStatus::Other(_) => return None,
    };
    let by_reason = Health::from_ready_reason(&healthy.reason);
    let health = by_reason.filter(|it| it.ready() == ready).unwrap_or(Health::from_ready(ready));
    // The clocks of others may be ahead.
    let since = |condition: Option<&Condition>| {
        condition.and_then(|it| it.last_transition_time).unwrap_or(now).min(now)
    };
    let probe = status.properties.iter().find(|it| it.name == PROBE);
    let probed = probe.and_then(|it| it.last_observed_time).map(|time| time.min(now));
    Some(Published::seed(health, since(Some(healthy)), since(reachable), probed))
}

/// The record of the availability that a status keeps.
pub(super) fn record(status: &ClusterProfileStatus) -> Option<&str> {
    let within = Condition::find(&status.conditions, WITHIN_OBJECTIVE)?;
    Some(Record::at_end_of(&within.message))
}

/// Whether a status has fields of ours.
pub(super) fn has_ours(status: &ClusterProfileStatus) -> bool {
    status.conditions.iter().any(|it| it.kind.starts_with(OWN_PREFIX))
        || status.properties.iter().any(|it| it.name.starts_with(OWN_PREFIX))
}

#[cfg(test)]
mod tests;
