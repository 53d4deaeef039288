//! [`Metadata`]: an object of any kind of which only the metadata is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::cached::share;
use crate::read::{object_key, presence, resource_version, shared_text};
use crate::{Cached, Decoding, View};

/// Metadata of one object. Annotations are left out: `kubectl apply` keeps whole objects there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "WireObject")]
pub struct Metadata {
    /// `metadata.name`, or `namespace/name`.
    pub key: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: u64,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.labels`.
    pub labels: BTreeMap<Box<str>, Box<str>>,
}

impl Cached for Metadata {
    const DECODING: Decoding = Decoding::Tolerant;
    const VIEW: View = View::Metadata;

    fn key(&self) -> &Arc<str> {
        &self.key
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn share_with(&mut self, older: &Self) {
        share(&mut self.key, &older.key);
        share(&mut self.uid, &older.uid);
    }

    fn resource_version(&self) -> u64 {
        self.resource_version
    }
}

#[derive(Deserialize)]
struct WireObject {
    metadata: WireMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMetadata {
    #[serde(default)]
    namespace: Option<Box<str>>,
    #[serde(deserialize_with = "shared_text")]
    name: Arc<str>,
    #[serde(deserialize_with = "shared_text")]
    uid: Arc<str>,
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default, deserialize_with = "presence")]
    deletion_timestamp: bool,
    #[serde(default)]
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
}

impl From<WireObject> for Metadata {
    fn from(WireObject { metadata }: WireObject) -> Self {
        Self {
            key: object_key(metadata.namespace.as_deref(), metadata.name),
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            deleting: metadata.deletion_timestamp,
            labels: metadata.labels.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_any_object_are_read_and_its_annotations_are_not_kept() {
        let read: Metadata = serde_json::from_str(
            r#"{"kind":"PartialObjectMetadata","metadata":{"namespace":"ns","name":"a","uid":"u",
                "resourceVersion":"7","deletionTimestamp":"2026-01-01T00:00:00Z",
                "labels":{"k":"v"},"annotations":{"big":"text"}}}"#,
        )
        .unwrap();
        assert_eq!((&**read.key(), read.uid(), read.resource_version()), ("ns/a", "u", 7));
        assert!(read.deleting);
        assert_eq!(read.labels.get("k").map(AsRef::as_ref), Some("v"));
    }

    #[test]
    fn a_newer_copy_takes_over_the_texts_that_are_equal_and_no_others() {
        let copy = |name: &str, uid: &str| Metadata {
            key: name.into(),
            uid: uid.into(),
            resource_version: 1,
            deleting: false,
            labels: BTreeMap::new(),
        };
        let older = copy("ns/a", "u");
        let (mut same, mut other) = (copy("ns/a", "u"), copy("ns/a", "v"));
        same.share_with(&older);
        other.share_with(&older);
        assert!(Arc::ptr_eq(&same.key, &older.key) && Arc::ptr_eq(&same.uid, &older.uid));
        assert!(Arc::ptr_eq(&other.key, &older.key));
        assert_eq!(&*other.uid, "v");
    }
}
