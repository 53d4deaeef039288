//! [`Draft`]: what may be changed of an object, and what a change comes to on the wire.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::object::{Object, Schema};
use crate::object_meta::OwnerReference;
use crate::patch::{between, overlay};

/// The fields of an object that a writer may change, apart from its status; also a new object.
#[derive(Serialize)]
pub struct Draft<S: Schema> {
    /// The changeable metadata.
    pub metadata: DraftMetadata,
    /// The fields except metadata and status.
    #[serde(flatten)]
    pub body: S::Body,
}

/// The metadata that a writer may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DraftMetadata {
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

impl<S: Schema> Draft<S> {
    /// A new object with no labels, annotations, finalizers or owners yet.
    pub fn new(body: S::Body) -> Self {
        Self { metadata: DraftMetadata::default(), body }
    }

    pub(crate) fn of(object: &Object<S>) -> Self {
        let metadata = &object.metadata;
        Self {
            metadata: DraftMetadata {
                labels: metadata.labels.clone(),
                annotations: metadata.annotations.clone(),
                finalizers: metadata.finalizers.clone(),
                owner_references: metadata.owner_references.clone(),
            },
            body: object.body.clone(),
        }
    }
}

/// The merge patch of what became of a draft; `None` when nothing did.
pub(crate) fn change_of<S: Schema>(
    object: &Object<S>,
    edited: &Draft<S>,
) -> Result<Option<Value>, serde_json::Error> {
    let before = serde_json::to_value(Draft::of(object))?;
    let after = serde_json::to_value(edited)?;
    Ok(change(object, &before, &after))
}

/// The merge patch of a changed status; `None` when nothing changed.
pub(crate) fn status_change_of<S: Schema>(
    object: &Object<S>,
    edited: &S::Status,
) -> Result<Option<Value>, serde_json::Error> {
    let before = json!({ "status": serde_json::to_value(&object.status)? });
    let after = json!({ "status": serde_json::to_value(edited)? });
    Ok(change(object, &before, &after))
}

fn change<S: Schema>(object: &Object<S>, before: &Value, after: &Value) -> Option<Value> {
    let raw = object.whole();
    let whole = overlay(Some(&raw), before, after)?;
    let mut patch = between(&raw, &whole)?;
    // Preconditions (`rule:writes-are-guarded`): the server refuses another object of this name,
    // and another version than the one that was changed.
    patch["metadata"]["uid"] = Value::from(&*object.metadata.uid);
    patch["metadata"]["resourceVersion"] = object.metadata.resource_version.to_string().into();
    Some(patch)
}

#[cfg(test)]
mod tests;
