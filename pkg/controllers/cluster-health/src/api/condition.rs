//! [`Condition`]: one fact about an object, with the time since which it holds.

use std::fmt;

use health::Status;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::tolerant;

/// A condition of a Cluster, a Machine or a KubeFedCluster: their fields are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// What the fact is about; unique in its list.
    #[serde(rename = "type", deserialize_with = "tolerant::null_is_default")]
    pub kind: String,
    /// Whether it holds.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub status: ConditionStatus,
    /// When it was last looked at.
    #[serde(with = "tolerant::time", skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Timestamp>,
    /// When `status` last changed.
    #[serde(with = "tolerant::time", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Why, as one word for programs. Written when it is empty as well: server-side apply keeps the
    /// text of another field manager where ours says nothing.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub reason: String,
    /// Why, for people.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say.
    #[default]
    Unknown,
    /// A word that the API does not have.
    #[serde(untagged)]
    Other(Box<str>),
}

impl From<Status> for ConditionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::True => Self::True,
            Status::False => Self::False,
            Status::Unknown => Self::Unknown,
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::Other(word) => word,
        })
    }
}
