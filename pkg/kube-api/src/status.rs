//! The `Status` object in which the API server words a refusal, read from JSON or protobuf; and
//! [`Condition`]: `metav1.Condition`, with the `severity` of Cluster API's older form.
//!
//! A proxy or gateway on the way may answer with anything, and may even send a `Status` of its own:
//! code that acts on a refusal reads [`Status::reason`] and [`Status::details`], not only the code of
//! the answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::go::null_is_default;
use crate::protobuf::{ENVELOPE, Fields, Malformed, Value, only};

/// The `Status` object with which the server refuses a request. Fields that the server left out are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The HTTP status once more.
    pub code: u16,
    /// The reason as one CamelCase word for programs: `NotFound`, `Conflict`, `Expired`, …
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The object that was refused, and why.
    pub details: Details,
}

/// The object of a [`Status`], and the causes of the refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group of the resource; empty for the core group.
    pub group: String,
    /// The resource in its plural, as `nodes`, unlike what the name of the field says.
    pub kind: String,
    /// UID of the object, when the server knows it.
    pub uid: String,
    /// More about it, one entry for each field of the object that was refused.
    #[serde(deserialize_with = "null_is_default")]
    pub causes: Vec<Cause>,
    /// When to come back, in seconds; 0 when the server does not say.
    #[serde(rename = "retryAfterSeconds")]
    pub retry_after_seconds: u32,
}

/// One reason among several for a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The reason as one CamelCase word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Path of the refused field.
    pub field: String,
}

impl Status {
    /// Reads the body of an answer, whichever way it is written. `None` when it is no `Status`:
    /// then something other than the API server wrote it.
    pub fn read(body: &[u8]) -> Option<Self> {
        match body.strip_prefix(ENVELOPE) {
            Some(unknown) => from_envelope(unknown).ok(),
            None => from_json(body),
        }
    }

    /// Reads the protobuf message of a `Status`, without the envelope that an answer has.
    pub fn from_protobuf(message: &[u8]) -> Result<Self, Malformed> {
        let mut status = Self::default();
        for field in Fields::of(message) {
            let field = field?;
            match (field.number, field.value) {
                (3, _) => field.text()?.clone_into(&mut status.message),
                (4, _) => field.text()?.clone_into(&mut status.reason),
                (5, _) => status.details = Details::from_protobuf(field.bytes()?)?,
                (6, Value::Varint(code)) => status.code = u16::try_from(code).unwrap_or(u16::MAX),
                _ => {}
            }
        }
        Ok(status)
    }

    /// The server says that the object `name` of `resource` (plural, as `nodes`) does not exist. A
    /// gateway's 404, or one about something else, says nothing about that object
    /// (`rule:not-found-names-the-object`).
    pub fn says_not_found(&self, resource: &str, name: &str) -> bool {
        self.reason == "NotFound" && self.details.kind == resource && self.details.name == name
    }
}

impl Details {
    fn from_protobuf(message: &[u8]) -> Result<Self, Malformed> {
        let mut details = Self::default();
        for field in Fields::of(message) {
            let field = field?;
            match (field.number, field.value) {
                (1, _) => field.text()?.clone_into(&mut details.name),
                (2, _) => field.text()?.clone_into(&mut details.group),
                (3, _) => field.text()?.clone_into(&mut details.kind),
                (4, _) => details.causes.push(Cause::from_protobuf(field.bytes()?)?),
                (5, Value::Varint(seconds)) => {
                    details.retry_after_seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
                }
                (6, _) => field.text()?.clone_into(&mut details.uid),
                _ => {}
            }
        }
        Ok(details)
    }
}

impl Cause {
    fn from_protobuf(message: &[u8]) -> Result<Self, Malformed> {
        let mut cause = Self::default();
        for field in Fields::of(message) {
            let field = field?;
            match field.number {
                1 => field.text()?.clone_into(&mut cause.reason),
                2 => field.text()?.clone_into(&mut cause.message),
                3 => field.text()?.clone_into(&mut cause.field),
                _ => {}
            }
        }
        Ok(cause)
    }
}

fn from_json(body: &[u8]) -> Option<Status> {
    #[derive(Deserialize)]
    struct Object {
        kind: String,
        #[serde(flatten)]
        status: Status,
    }
    let object: Object = serde_json::from_slice(body).ok()?;
    (object.kind == "Status").then_some(object.status)
}

/// Reads the content of an envelope, if its type (field 1) says in its kind (field 2) that it is a `Status`.
fn from_envelope(unknown: &[u8]) -> Result<Status, Malformed> {
    match only(only(unknown, 1)?, 2)? {
        b"Status" => Status::from_protobuf(only(unknown, 2)?),
        _ => Err(Malformed("another kind than Status")),
    }
}

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
mod tests;
