//! [`Object`]: a whole object with the typed view of its [`Schema`]. Made only by reading an object in
//! full, so that its holder may write it back: the slim copies of `kube-api` are other types.
//! [`Draft`]: what may be changed of it, and what a change comes to on the wire.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;

use kube_api::{Cached, Decoding};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::object_meta::{ObjectMeta, OwnerReference};
use crate::patch::{between, overlay};

/// A whole object as the server sent it, except for `metadata.managedFields`, which the server
/// keeps by itself when a writer leaves them out, and for what [`Schema::KEPT_OF_SPEC`] leaves out.
pub struct Object<S: Schema> {
    /// `metadata`.
    pub metadata: ObjectMeta,
    /// The typed view of the fields except metadata and status.
    pub body: S::Body,
    /// The typed view of `status`.
    pub status: S::Status,
    /// `apiVersion` in `metadata.managedFields` of the writer of [`Schema::TELLS_VERSION`], or of
    /// the object's first writer where that field has no owner.
    pub written_as: Option<Box<str>>,
    /// All that is kept, as JSON text, which takes a fraction of the memory of parsed JSON.
    text: Box<str>,
}

/// The object is not what its type expects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode the object: {field} is missing or is not of the expected form")]
pub struct DecodeError {
    /// Path of the field. Its value is never shown: it may be a secret.
    pub field: String,
}

impl<S: Schema> Object<S> {
    /// Takes an object that was read in full.
    ///
    /// # Errors
    /// [`DecodeError`] names the first field that the types do not take.
    pub fn read(mut whole: Value) -> Result<Self, DecodeError> {
        if let Some(kept) = S::KEPT_OF_SPEC {
            reduce(&mut whole, kept);
        }
        let metadata: ObjectMeta = typed(whole.get("metadata"), "metadata")?;
        let written_as = S::TELLS_VERSION.and_then(|field| version_of_writer(&whole, field));
        if let Some(metadata) = whole.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let text = whole.to_string().into_boxed_str();
        drop_nulls(&mut whole);
        let status = match whole.get("status") {
            None => S::Status::default(),
            status => typed(status, "status")?,
        };
        let body = typed(body_of(whole).as_ref(), "")?;
        Ok(Self { metadata, body, status, written_as, text })
    }

    /// The object as it is kept, as JSON.
    pub fn whole(&self) -> Value {
        // The text was made from JSON by this type.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Bytes of its text, for who counts memory.
    pub fn size(&self) -> usize {
        self.text.len()
    }
}

impl<'de, S: Schema> Deserialize<'de> for Object<S> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Custom resources are tolerated: one that the types do not take is skipped and named.
impl<S: Schema> Cached for Object<S> {
    const DECODING: Decoding = Decoding::Tolerant;

    fn key(&self) -> &Arc<str> {
        &self.metadata.key
    }

    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn resource_version(&self) -> u64 {
        self.metadata.resource_version
    }
}

/// Drops the other fields of `spec`, and the copy of them that `kubectl apply` keeps
/// (`rule:unneeded-secrets-are-dropped`).
fn reduce(whole: &mut Value, kept: &[&str]) {
    if let Some(spec) = whole.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|field, _| kept.contains(&&**field));
    }
    let annotations = whole.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// Drops fields that are `null`: Go writes that for an empty list or map, and reads it as an absent field.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Writes by a subresource, such as those of a status, do not count.
fn version_of_writer(whole: &Value, field: &str) -> Option<Box<str>> {
    let writers = whole.pointer("/metadata/managedFields")?.as_array()?;
    let mut writers = writers.iter().filter(|writer| writer.get("subresource").is_none());
    let path = format!("/fieldsV1/f:spec/f:{field}");
    let owner = writers.clone().find(|writer| writer.pointer(&path).is_some());
    let writer = owner.or_else(|| writers.next())?;
    writer.get("apiVersion")?.as_str().map(Into::into)
}

/// The fields of the typed body.
fn body_of(whole: Value) -> Option<Value> {
    let Value::Object(fields) = whole else { return None };
    let ours = |field: &str| !["apiVersion", "kind", "metadata", "status"].contains(&field);
    let body: Map<_, _> = fields.into_iter().filter(|(field, _)| ours(field)).collect();
    Some(Value::Object(body))
}

fn typed<T: for<'a> Deserialize<'a>>(value: Option<&Value>, at: &str) -> Result<T, DecodeError> {
    let value = value.unwrap_or(&Value::Null);
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inside = error.path().to_string();
        let field = match (at, &*inside) {
            ("", _) => inside,
            (_, ".") => at.to_owned(),
            _ => format!("{at}.{inside}"),
        };
        DecodeError { field }
    })
}

impl<S: Schema> Clone for Object<S> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            body: self.body.clone(),
            status: self.status.clone(),
            written_as: self.written_as.clone(),
            text: self.text.clone(),
        }
    }
}

/// Never its fields: an object may be a Secret.
impl<S: Schema> fmt::Debug for Object<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("key", &self.metadata.key)
            .field("uid", &self.metadata.uid)
            .field("resource_version", &self.metadata.resource_version)
            .finish_non_exhaustive()
    }
}

/// The typed view of one kind. Types name the fields that the controller uses; what they do not
/// name stays in the object and survives every write (`rule:unknown-fields-survive`).
pub trait Schema: Debug + Send + Sync + 'static {
    /// The fields except `apiVersion`, `kind`, `metadata` and `status`: for most kinds a struct
    /// with the one field `spec`.
    type Body: Clone + Serialize + DeserializeOwned + Send + Sync;

    /// The field `status`; `()` for a kind that has none. The default stands for an absent one.
    type Status: Clone + Default + Serialize + DeserializeOwned + Send + Sync;

    /// The only fields of `spec` that an object of this kind keeps in memory, for kinds whose spec
    /// holds passwords; `None` keeps all (`rule:unneeded-secrets-are-dropped`).
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = None;

    /// The field of `spec` whose writer tells the version in which the object was written; see
    /// [`Object::written_as`](crate::Object::written_as).
    const TELLS_VERSION: Option<&'static str> = None;
}

/// A kind that is learnt at run time: its fields are JSON.
#[derive(Clone, Copy, Debug)]
pub enum Dynamic {}

impl Schema for Dynamic {
    type Body = Map<String, Value>;
    type Status = Value;
}

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
