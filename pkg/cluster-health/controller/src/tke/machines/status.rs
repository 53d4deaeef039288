//! The status of a Machine: its fields for server-side apply, the part of them whose change is worth
//! a write, and how a restarted process reads it back. Pure.

use health::{Code, Finding, Health, ProbePath, Published, Status};
use jiff::Timestamp;
use objects::Object;
use serde_json::{Value, json};

use super::state::{NODE_NOT_READY, PublishedMachine, UnknownReason};
use crate::api::tke::{Machine, MachineInfo, MachineStatus, Phase};
use crate::api::{Condition, ConditionStatus};
use crate::engine::hash_of;

/// The condition about health; all others belong to installers.
const HEALTH_CHECK: &str = "HealthCheck";

/// Whether its status is ours to write: other actors own the phases in which they set a Machine up,
/// upgrade it or take it away.
pub(crate) fn is_live(machine: &Object<Machine>) -> bool {
    let at_work = matches!(machine.status.phase, Phase::Running | Phase::Failed);
    at_work && !machine.metadata.deleting()
}

/// The status of one Machine, as it is written or as its object shows it.
pub(crate) struct Written<'a> {
    phase: Phase,
    reason: &'a str,
    message: &'a str,
    condition: Option<Condition>,
    info: Option<&'a MachineInfo>,
}

impl<'a> Written<'a> {
    /// The status to write to `machine`.
    pub(crate) fn new(machine: &'a Object<Machine>, published: &'a PublishedMachine) -> Self {
        let status = &machine.status;
        let (phase, reason, message) = match published.status() {
            Status::True => (Phase::Running, "", ""),
            Status::False => (Phase::Failed, published.reason(), published.message()),
            // Unknown: keep the last phase, reason and message.
            Status::Unknown => (status.phase.clone(), &*status.reason, &*status.message),
        };
        let since = (published.status(), published.health.ready.since);
        let texts = (published.reason(), published.message());
        let condition = Condition::new(HEALTH_CHECK, since, published.health.probed, texts);
        let info = published.info.as_ref().or(status.machine_info.as_ref());
        Self { phase, reason, message, condition: Some(condition), info }
    }

    /// The status that `machine` shows now.
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

    /// The fields for server-side apply, with the resourceVersion that they are computed from:
    /// another actor may have changed the phase meanwhile.
    pub(crate) fn fields(&self, machine: &Object<Machine>) -> Value {
        let mut status = json!({
            "phase": self.phase,
            // Empty texts remove those that other actors wrote.
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

    /// A hash of the fields whose change is worth a write: neither times nor messages.
    pub(crate) fn fingerprint(&self) -> u64 {
        let condition = self.condition.as_ref().map(|it| (it.status.to_string(), &*it.reason));
        hash_of(&(&self.phase, self.reason, condition, json!(self.info).to_string()))
    }
}

/// The state that a process which takes the Machine over reads from its object.
pub(crate) fn seed(machine: &Object<Machine>, now: Timestamp) -> Option<PublishedMachine> {
    let status = &machine.status;
    let condition = cached(status);
    let said = condition.map(|condition| &condition.status);
    let (health, code, unknown) = match (said, &status.phase, &*status.reason) {
        (Some(ConditionStatus::Unknown), ..) => {
            (Health::Unknown, None, Some(UnknownReason::parse(&condition?.reason)?))
        }
        (Some(ConditionStatus::Other(_)), ..) => return None,
        (_, Phase::Running, _) => (Health::Ready, None, None),
        (_, Phase::Failed, NODE_NOT_READY) => (Health::NotReady, Some(Code::NodeNotReady), None),
        (_, Phase::Failed, _) => (Health::NotReady, Some(Code::NodeMissing), None),
        _ => return None,
    };
    let agreeing = condition.filter(|it| it.status.to_string() == health.ready().as_str());
    let since = agreeing.and_then(|it| it.last_transition_time).unwrap_or(now);
    let probed = condition.and_then(|it| it.last_probe_time).map(|probed| probed.min(now));
    let health = Published {
        finding: code.map(|code| Finding::failed(code, ProbePath::default())),
        detail: agreeing.map(|it| it.message.as_str().into()),
        ..Published::seed(health, since, since, probed)
    };
    Some(PublishedMachine { health, unknown, info: None })
}

/// Whether a Machine is locked.
pub(crate) fn is_locked(machine: &Object<Machine>) -> bool {
    machine.status.locked == Some(true)
}

fn cached(status: &MachineStatus) -> Option<&Condition> {
    Condition::find(&status.conditions, HEALTH_CHECK)
}

#[cfg(test)]
mod tests;
