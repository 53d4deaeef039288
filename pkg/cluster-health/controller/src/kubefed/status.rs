//! The conditions of a member: written from the published health, and read back. Pure.

use std::borrow::Cow;

use health::{CheckReport, CheckStatus, Health, Published, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Condition;
use crate::api::kubefed::KubeFedClusterStatus;

const READY: &str = "Ready";
const OFFLINE: &str = "Offline";

/// The fields of the status: both conditions, and the zones, the region and the record that are known.
pub(crate) fn fields(published: &Published, message: &str, held: &KubeFedClusterStatus) -> Value {
    let Published { health, ready, offline, probed, .. } = published;
    // The schema requires it; no probe was completed since then.
    let probed = Some(probed.unwrap_or(ready.since));
    let about_offline = match offline.status {
        Status::True => "cluster is not reachable",
        Status::False => "cluster is reachable",
        Status::Unknown => message,
    };
    let conditions = [
        Condition::new(
            READY,
            (ready.status, ready.since),
            probed,
            (health.ready_reason(), message),
        ),
        Condition::new(
            OFFLINE,
            (offline.status, offline.since),
            probed,
            (health.offline_reason(), about_offline),
        ),
    ];
    let mut status = json!({ "conditions": conditions });
    // What this process does not know it must not take away.
    if !held.zones.is_empty() {
        status["zones"] = json!(held.zones);
    }
    if let Some(region) = &held.region {
        status["region"] = json!(region);
    }
    if let Some(record) = &held.availability {
        status["availability"] = json!(record);
    }
    json!({ "status": status })
}

/// The message with the failed checks that it does not tell of yet: upstream's status has no other place for them.
pub(crate) fn with_checks<'a>(message: &'a str, checks: &[CheckReport]) -> Cow<'a, str> {
    let failed = checks.iter().filter(|it| it.status == Some(CheckStatus::Failed));
    let texts = failed.map(|it| format!("{}: {}", it.name, it.message));
    let texts: Vec<_> = texts.filter(|text| !message.contains(text)).collect();
    if texts.is_empty() {
        return message.into();
    }
    health::one_line(&format!("{message}; failed checks: {}", texts.join(", "))).into()
}

/// A hash of what matters in the status.
pub(crate) fn fingerprint(health: Health, held: &KubeFedClusterStatus) -> u64 {
    let KubeFedClusterStatus { zones, region, .. } = held;
    health::hash(&format!("{health:?} {zones:?} {region:?}"))
}

/// The health that an object shows; `None` when it shows none.
pub(crate) fn seed(status: &KubeFedClusterStatus, now: Timestamp) -> Option<Published> {
    let find = |kind: &str| Condition::find(&status.conditions, kind);
    let ready = find(READY).or_else(|| find(OFFLINE))?;
    let health = health(find(READY), find(OFFLINE))?;
    let since = |condition: Option<&Condition>| {
        let known = condition.and_then(|it| it.last_transition_time.or(it.last_probe_time));
        // Others' clocks may be ahead.
        known.unwrap_or(now).min(now)
    };
    let probed = ready.last_probe_time.map(|time| time.min(now));
    Some(Published::seed(health, since(Some(ready)), since(find(OFFLINE)), probed))
}

/// The fingerprint of what an object shows; `None` when it is not all that is published.
pub(crate) fn shown(status: &KubeFedClusterStatus, now: Timestamp) -> Option<u64> {
    let published = seed(status, now).filter(|_| is_whole(status))?;
    Some(fingerprint(published.health, status))
}

/// Whether both conditions are there: upstream publishes one of the two only.
fn is_whole(status: &KubeFedClusterStatus) -> bool {
    [READY, OFFLINE].iter().all(|kind| Condition::find(&status.conditions, kind).is_some())
}

fn health(ready: Option<&Condition>, offline: Option<&Condition>) -> Option<Health> {
    let ready = ready.and_then(|ready| Some((ready, ready.status.known()?)));
    let offline = offline.and_then(|offline| offline.status.known());
    match (ready, offline) {
        (Some((ready, status)), _) => {
            let told = Health::from_ready_reason(&ready.reason);
            let told = told.filter(|health| health.ready() == status);
            let offline = (status == Status::False && offline == Some(Status::True))
                .then_some(Health::Unreachable);
            Some(told.or(offline).unwrap_or(Health::from_ready(status)))
        }
        (None, Some(Status::True)) => Some(Health::Unreachable),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests;
