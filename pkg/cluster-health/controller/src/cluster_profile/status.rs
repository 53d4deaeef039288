//! The part of a ClusterProfile's status that is ours: written from the published health, and read back. Pure.

use health::Published;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Condition;
use crate::api::cluster_profile::{ClusterProfileStatus, Property};
use crate::engine::{OWN_PREFIX, Statement};
use crate::shared_conditions::{self, condition};

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
    let Published { health, ready, probed, .. } = published;
    let mut conditions: Vec<Condition> =
        shared_conditions::conditions(published, statement, &stored.conditions);
    let mut status = json!({});
    if manager.is_ours {
        let (reason, about) = (health.ready_reason(), (statement.message, *probed));
        conditions.push(condition(CONTROL_PLANE, ready.status, ready.since, reason, about));
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
    status
}

/// The health that an object shows; `None` when it shows none.
pub(super) fn seed(status: &ClusterProfileStatus, now: Timestamp) -> Option<Published> {
    let seed = shared_conditions::seed(&status.conditions, now)?;
    let probe = status.properties.iter().find(|it| it.name == PROBE);
    let probed = probe.and_then(|it| it.last_observed_time).map(|time| time.min(now));
    Some(Published { probed, ..seed })
}

/// Whether a status has fields of ours.
pub(super) fn has_ours(status: &ClusterProfileStatus) -> bool {
    shared_conditions::has_ours(&status.conditions)
        || status.properties.iter().any(|it| it.name.starts_with(OWN_PREFIX))
}

#[cfg(test)]
mod tests;
