//! AWSClusters as cores of both contracts of Cluster API read them: with all fields that they know,
//! and without any that they do not.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::scene::condition;

/// A condition of contract v1beta1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OlderCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    severity: String,
    last_transition_time: String,
    #[serde(default)]
    reason: String,
    #[serde(default, rename = "message")]
    _message: String,
}

/// A condition of contract v1beta2: one of Kubernetes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewerCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    observed_generation: i64,
    last_transition_time: String,
    reason: String,
    #[serde(rename = "message")]
    _message: String,
}

/// A zone of contract v1beta1, by its name.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Older {
    pub(crate) control_plane: bool,
}

/// A zone of contract v1beta2.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Newer {
    name: String,
    control_plane: bool,
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_else(|error| panic!("{error}: {value:#}"))
}

/// Asserts what both contracts require of a ready AWSCluster.
fn keeps_both(object: &Value) {
    let endpoint = &object["spec"]["controlPlaneEndpoint"];
    assert!(endpoint["host"].as_str().is_some_and(|host| !host.is_empty()), "{object:#}");
    assert_eq!(endpoint["port"], 6443);
    assert_eq!(object["status"]["ready"], true);
    assert_eq!(object["status"]["initialization"]["provisioned"], true);
    assert_eq!(condition(object, "Ready")["status"], "True");
    assert_eq!(condition(object, "Paused")["status"], "False");
}

fn is_time(text: &str) -> bool {
    text.len() == "2026-01-01T00:00:00Z".len() && text.ends_with('Z')
}

/// Asserts that a core of contract v1beta1 can read the object, with these zones.
pub(crate) fn keeps_older(object: &Value, zones: &[(&str, Older)]) {
    keeps_both(object);
    let found: BTreeMap<String, Older> = read(&object["status"]["failureDomains"]);
    assert!(
        found
            .iter()
            .map(|(name, zone)| (&**name, zone))
            .eq(zones.iter().map(|(name, zone)| (*name, zone)))
    );
    let conditions: Vec<OlderCondition> = read(&object["status"]["conditions"]);
    assert!(conditions.len() > 8, "{conditions:?}");
    for OlderCondition { kind, status, severity, last_transition_time, reason, .. } in conditions {
        let severities: &[&str] =
            if status == "False" { &["Error", "Warning", "Info"] } else { &[""] };
        assert!(severities.contains(&&*severity), "{kind}: {status}, {severity}");
        assert!(is_time(&last_transition_time), "{kind}: {last_transition_time}");
        assert!(status != "False" || !reason.is_empty(), "{kind} has no reason");
    }
}

/// Asserts that a core of contract v1beta2 can read the object, with these zones.
pub(crate) fn keeps_newer(object: &Value, zones: &[(&str, bool)]) {
    keeps_both(object);
    let found: Vec<Newer> = read(&object["status"]["failureDomains"]);
    let found: Vec<_> = found.iter().map(|zone| (&*zone.name, zone.control_plane)).collect();
    assert_eq!(found, zones);
    let conditions: Vec<NewerCondition> = read(&object["status"]["conditions"]);
    assert!(conditions.len() > 8, "{conditions:?}");
    let kinds: BTreeSet<_> = conditions.iter().map(|it| &it.kind).collect();
    assert_eq!(kinds.len(), conditions.len(), "each once");
    for it in &conditions {
        assert!(["True", "False", "Unknown"].contains(&&*it.status), "{it:?}");
        assert!(!it.reason.is_empty() && is_time(&it.last_transition_time), "{it:?}");
        assert!(
            (1..=object["metadata"]["generation"].as_i64().unwrap())
                .contains(&it.observed_generation)
        );
    }
}
