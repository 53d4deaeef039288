//! [`Conditions`]: what a reconciliation over an object has found out, for the list in its status.

use jiff::Timestamp;
use kube_api::set_status_condition;

pub(crate) use kube_api::Condition;

/// Changes to the conditions of an object.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) stated: Vec<Condition>,
    pub(crate) gone: Vec<&'static str>,
}

impl Conditions {
    /// Adds a condition that holds or does not, with its reason.
    pub(crate) fn state(
        &mut self,
        kind: &str,
        holds: bool,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.stated.push(Condition::new(kind, holds, reason, message));
    }

    /// Has a list of conditions say it about this generation.
    pub(crate) fn publish(&self, conditions: &mut Vec<Condition>, generation: i64, now: Timestamp) {
        for kind in &self.gone {
            conditions.retain(|held| held.kind != *kind);
        }
        for fact in &self.stated {
            let observed_generation = Some(generation);
            let condition = Condition { observed_generation, ..fact.clone() };
            set_status_condition(conditions, condition, now);
        }
    }
}
