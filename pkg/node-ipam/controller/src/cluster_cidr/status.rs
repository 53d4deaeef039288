//! `status` of a ClusterCIDR.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What is told of a ClusterCIDR.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClusterCidrStatus {
    /// Facts about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<Condition>,
    /// How full its ranges are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) families: Vec<RangeStatus>,
}

/// How full a range is. Numbers are cut at what an int64 holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RangeStatus {
    /// The range.
    pub(super) cidr: String,
    /// How many blocks it has.
    #[serde(default)]
    pub(super) total: i64,
    /// How many of them are used.
    #[serde(default)]
    pub(super) used: i64,
}

/// A condition in the form of `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    /// What the fact is about.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// `True`, `False` or `Unknown`.
    pub(super) status: String,
    /// Why, as one word for programs.
    #[serde(default)]
    pub(super) reason: String,
    /// Why, for people.
    #[serde(default)]
    pub(super) message: String,
    /// When `status` last changed, in RFC 3339.
    #[serde(default)]
    pub(super) last_transition_time: String,
    /// Generation of the spec that the fact is about.
    #[serde(default)]
    pub(super) observed_generation: i64,
}

impl ClusterCidrStatus {
    /// States a fact. Its time is that of the last change of its status, so stating the same again
    /// changes nothing.
    pub(super) fn state(&mut self, mut fact: Condition, now: Timestamp) {
        let before = self.conditions.iter_mut().find(|held| held.kind == fact.kind);
        let since = before.as_ref().filter(|held| held.status == fact.status);
        fact.last_transition_time = match since {
            Some(held) => held.last_transition_time.clone(),
            None => now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        };
        match before {
            Some(held) => *held = fact,
            None => self.conditions.push(fact),
        }
    }
}
