//! [`Condition`]: `metav1.Condition`, with the `severity` of Cluster API's older form.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One fact about an object, with the time since which it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition; unique in its list.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// `Error`, `Warning` or `Info`: how bad it is that the condition is not `True`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The cause as one word for programs.
    #[serde(default)]
    pub reason: String,
    /// The cause for people.
    #[serde(default)]
    pub message: String,
    /// When `status` last changed, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// `metadata.generation` of the object that the condition was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition that is `True` or `False`, without times and generation.
    pub fn new(kind: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            status: if holds { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// Whether the status is `True`.
    pub fn holds(&self) -> bool {
        self.status == "True"
    }
}

/// Adds `condition`, or replaces the one of its type. The transition time changes with the status
/// only, so setting an equal condition again changes nothing.
pub fn set_status_condition(
    conditions: &mut Vec<Condition>,
    mut condition: Condition,
    now: Timestamp,
) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
        let mut set = |holds, message, second| {
            let condition = Condition::new("Ready", holds, "Waiting", message);
            set_status_condition(&mut conditions, condition, at(second));
            set_status_condition(&mut conditions, Condition::new("Other", true, "Fine", ""), at(9));
            assert_eq!(conditions.len(), 2);
            (conditions[0].last_transition_time.clone().unwrap(), conditions[0].message.clone())
        };
        let row = |time: &str, message: &str| (time.to_owned(), message.to_owned());
        assert_eq!(set(false, "for a", 10), row("1970-01-01T00:00:10Z", "for a"));
        assert_eq!(set(false, "for b", 20), row("1970-01-01T00:00:10Z", "for b"));
        assert_eq!(set(true, "", 30), row("1970-01-01T00:00:30Z", ""));
    }
}
