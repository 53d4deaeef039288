//! What is written to a Machine: its status as server-side apply takes it, the part of that whose
//! change is worth a write, and what a restarted process reads back from it. Pure.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use health::Status;
use jiff::Timestamp;
use objects::Object;
use serde_json::{Value, json};

use super::record::Published;
use super::standing::{Cause, Standing};
use crate::api::tke::{Machine, MachineInfo, MachineStatus, Phase};
use crate::api::{Condition, ConditionStatus};

/// The condition about health; all others belong to installers.
const HEALTH_CHECK: &str = "HealthCheck";

/// Whether anything is said of it: whoever sets a Machine up, upgrades it or takes it away says so
/// by its phase (`rule:only-live-machines`).
pub(crate) fn is_live(machine: &Object<Machine>) -> bool {
    let at_work = matches!(machine.status.phase, Phase::Running | Phase::Failed);
    at_work && !machine.metadata.deleting()
}

/// What is written about one Machine.
pub(crate) struct Written<'a> {
    phase: Phase,
    reason: &'a str,
    message: &'a str,
    condition: Option<Condition>,
    info: Option<&'a MachineInfo>,
}

impl<'a> Written<'a> {
    /// What the status of `machine` is to say.
    pub(crate) fn new(machine: &'a Object<Machine>, published: &'a Published) -> Self {
        let status = &machine.status;
        let standing = published.standing;
        let (phase, reason, message) = match standing.status() {
            Status::True => (Phase::Running, "", ""),
            Status::False => (Phase::Failed, standing.reason(), &*published.message),
            // Nobody knows: what was said stays.
            Status::Unknown => (status.phase.clone(), &*status.reason, &*status.message),
        };
        let condition = Some(Condition {
            kind: HEALTH_CHECK.to_owned(),
            status: standing.status().into(),
            last_probe_time: published.probed,
            last_transition_time: Some(published.since),
            reason: standing.reason().to_owned(),
            message: published.message.clone(),
        });
        let info = published.info.as_ref().or(status.machine_info.as_ref());
        Self { phase, reason, message, condition, info }
    }

    /// What it says now.
    pub(crate) fn shown(machine: &'a Object<Machine>) -> Self {
        let status = &machine.status;
        Self {
            phase: status.phase.clone(),
            reason: &status.reason,
            message: &status.message,
            condition: cached(status).cloned(),
            info: status.machine_info.as_ref(),
        }
    }

    /// As server-side apply takes it; with the version on which it rests, because somebody may
    /// have changed the phase meanwhile.
    pub(crate) fn fields(&self, machine: &Object<Machine>) -> Value {
        let mut status = json!({
            "phase": self.phase,
            // Empty texts take away those that others wrote.
            "reason": self.reason,
            "message": self.message,
            "conditions": self.condition.iter().collect::<Vec<_>>(),
        });
        if let Some(info) = self.info {
            status["machineInfo"] = json!(info);
        }
        let version = machine.metadata.resource_version.to_string();
        json!({ "metadata": {"resourceVersion": version}, "status": status })
    }

    /// A hash of what is worth a write: neither times nor messages.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        let condition = self.condition.as_ref();
        (&self.phase, self.reason).hash(&mut hash);
        condition.map(|it| (it.status.to_string(), &*it.reason)).hash(&mut hash);
        json!(self.info).to_string().hash(&mut hash);
        hash.finish()
    }
}

/// What a process that takes the Machine over reads from its object.
pub(crate) fn seed(machine: &Object<Machine>, now: Timestamp) -> Option<Published> {
    let status = &machine.status;
    let condition = cached(status);
    let said = condition.map(|condition| &condition.status);
    let standing = match (said, &status.phase, &*status.reason) {
        // Whatever was true before nobody looked.
        (Some(ConditionStatus::Unknown), ..) => Standing::Unknown(Cause::of(&condition?.reason)?),
        (Some(ConditionStatus::Other(_)), ..) => return None,
        (_, Phase::Running, _) => Standing::Well,
        (_, Phase::Failed, "NodeNotReady") => Standing::NodeNotReady,
        (_, Phase::Failed, _) => Standing::Missing,
        _ => return None,
    };
    let agreeing = condition.filter(|it| it.status.to_string() == standing.status().as_str());
    Some(Published {
        standing,
        message: agreeing.map(|it| it.message.clone()).unwrap_or_default(),
        since: agreeing.and_then(|it| it.last_transition_time).unwrap_or(now),
        probed: condition.and_then(|it| it.last_probe_time).map(|probed| probed.min(now)),
        info: None,
    })
}

/// Why nobody is to say anything about a live Machine.
pub(crate) fn locked(machine: &Object<Machine>) -> Option<Cause> {
    (machine.status.locked == Some(true)).then_some(Cause::Locked)
}

fn cached(status: &MachineStatus) -> Option<&Condition> {
    status.conditions.iter().find(|condition| condition.kind == HEALTH_CHECK)
}

#[cfg(test)]
mod tests;
