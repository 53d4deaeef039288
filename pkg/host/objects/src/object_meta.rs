//! [`ObjectMeta`]: `metadata` of a whole object, as controllers read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// `metadata`. What may be changed is changed through a [`Draft`](crate::Draft).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Name, or `namespace/name` for a namespaced object.
    pub key: Arc<str>,
    /// Unique over all time: a name that comes back with another UID is another object.
    pub uid: Arc<str>,
    /// Version of this copy; of two copies of one object the higher one is newer.
    pub resource_version: u64,
    /// Counts the changes of what is wanted, as status does not; 0 where the kind has none.
    pub generation: i64,
    /// When it was made, in RFC 3339.
    pub creation_timestamp: Option<String>,
    /// When its deletion was asked for, or when its time of grace ends, in RFC 3339.
    pub deletion_timestamp: Option<String>,
    /// The time of grace that a deletion gives it, in seconds.
    pub deletion_grace_period_seconds: Option<i64>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers: the object stays until all are removed.
    pub finalizers: Vec<String>,
    /// The objects it belongs to.
    pub owner_references: Vec<OwnerReference>,
}

impl ObjectMeta {
    /// Name without the namespace.
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// Namespace, if it is in one.
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Whether the object is being deleted.
    pub fn deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether the object is deleted and nothing holds it any more: a write that is answered with such an object has
    /// ended it. One with a time of grace goes on living, without finalizers too
    ///.
    pub fn has_ended(&self) -> bool {
        let graceless = self.deletion_grace_period_seconds == Some(0);
        self.deleting() && graceless && self.finalizers.is_empty()
    }

    /// Whether this finalizer holds it.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|held| held == finalizer)
    }
}

/// One owner: when all owners are gone, the object goes too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `group/version` of the owner.
    pub api_version: String,
    /// Schema of the owner.
    pub kind: String,
    /// Name of the owner, in the same namespace or in none.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Whether this owner is the controller of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// The owner's deletion in the foreground waits for the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl<'de> Deserialize<'de> for ObjectMeta {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Wire::deserialize(from).map(Self::from)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    uid: Arc<str>,
    #[serde(deserialize_with = "kube_api::resource_version")]
    resource_version: u64,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    creation_timestamp: Option<String>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    deletion_grace_period_seconds: Option<i64>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
    #[serde(default)]
    owner_references: Option<Vec<OwnerReference>>,
}

impl From<Wire> for ObjectMeta {
    fn from(wire: Wire) -> Self {
        Self {
            key: match wire.namespace {
                Some(namespace) => Arc::from(format!("{namespace}/{}", wire.name)),
                None => Arc::from(wire.name),
            },
            uid: wire.uid,
            resource_version: wire.resource_version,
            generation: wire.generation,
            creation_timestamp: wire.creation_timestamp,
            deletion_timestamp: wire.deletion_timestamp,
            deletion_grace_period_seconds: wire.deletion_grace_period_seconds,
            labels: wire.labels.unwrap_or_default(),
            annotations: wire.annotations.unwrap_or_default(),
            finalizers: wire.finalizers.unwrap_or_default(),
            owner_references: wire.owner_references.unwrap_or_default(),
        }
    }
}
