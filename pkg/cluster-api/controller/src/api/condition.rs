//! [`Condition`]: one fact about an object, with the time since which it holds.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A condition in the form of `metav1.Condition`, with the one field more of Cluster API's older form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    /// Type of the condition; unique in its list.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: String,
    /// How much it matters, in the older form, of what does not hold: `Error`, `Warning` or `Info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) severity: Option<String>,
    #[serde(default)]
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) message: String,
    /// When `status` last changed, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<String>,
    /// Generation of the spec that the fact is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
}

impl Condition {
    /// Holds or does not, for this reason.
    pub(crate) fn new(kind: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            status: if holds { "True" } else { "False" }.to_owned(),
            severity: None,
            reason: reason.to_owned(),
            message: message.into(),
            last_transition_time: None,
            observed_generation: None,
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.status == "True"
    }
}

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
            remove(conditions, kind);
        }
        for fact in &self.stated {
            let observed_generation = Some(generation);
            set(conditions, Condition { observed_generation, ..fact.clone() }, now);
        }
    }
}

/// Puts a condition in the place of the one of its type. Its time is that of the change of its
/// status, so stating the same again changes nothing.
fn set(conditions: &mut Vec<Condition>, mut condition: Condition, now: Timestamp) {
    let before = conditions.iter_mut().find(|held| held.kind == condition.kind);
    let since = before.as_ref().filter(|held| held.status == condition.status);
    condition.last_transition_time = since
        .and_then(|held| held.last_transition_time.clone())
        .or_else(|| Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    match before {
        Some(held) => *held = condition,
        None => conditions.push(condition),
    }
}

fn remove(conditions: &mut Vec<Condition>, kind: &str) {
    conditions.retain(|held| held.kind != kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_change_of_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
        set(&mut conditions, Condition::new("Ready", false, "Waiting", "for a"), at(10));
        set(&mut conditions, Condition::new("Other", true, "Fine", ""), at(10));
        set(&mut conditions, Condition::new("Ready", false, "Waiting", "for b"), at(20));
        assert_eq!(conditions[0].last_transition_time.as_deref(), Some("1970-01-01T00:00:10Z"));
        assert_eq!(conditions[0].message, "for b");
        set(&mut conditions, Condition::new("Ready", true, "Ready", ""), at(30));
        assert_eq!(conditions[0].last_transition_time.as_deref(), Some("1970-01-01T00:00:30Z"));
        remove(&mut conditions, "Ready");
        assert_eq!(conditions.len(), 1);
    }
}
