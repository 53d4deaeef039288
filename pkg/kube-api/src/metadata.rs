//! [`Metadata`]: the metadata of an object of any kind; [`ListMeta`]: that of a page of a list; and
//! serde readers for names, versions and presence.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, Unexpected, Visitor};

use super::kind::share;
use super::protobuf::version;
use super::{Cached, Decoding, View};

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

/// Metadata of one page of a list, as far as a pager needs them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListMeta {
    /// Token of the next page: `None` or empty on the last page.
    #[serde(rename = "continue")]
    pub token: Option<Box<str>>,
}

/// Reads a string straight into an `Arc<str>`; serde's own reader goes through a `Box<str>`.
pub(crate) fn shared_text<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(Arc::from(text))
        }
    }
    from.deserialize_str(Text)
}

/// Reads a `resourceVersion`: decimal text without a sign, comparable as a number by the API's
/// contract.
pub fn resource_version<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    struct Version;
    impl Visitor<'_> for Version {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a resource version: a string of digits")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            let version = version(text).ok().filter(|_| !text.is_empty());
            version.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }
    from.deserialize_str(Version)
}

/// Key of an object: `namespace/name`, or the name of one without a namespace.
pub fn object_key(namespace: Option<&str>, name: Arc<str>) -> Arc<str> {
    match namespace {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}").into(),
        _ => name,
    }
}

/// True when the field is there and not null, whatever it holds.
pub(crate) fn presence<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(from)?.is_some())
}

/// `text` with a question mark for each control character: keys and names of an object may have
/// line ends in them, and what is said of it is one line.
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
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

#[cfg(test)]
mod read_tests {
    use super::*;

    #[test]
    fn the_key_of_an_object_has_its_namespace_if_there_is_one() {
        for (namespace, key) in [(Some("ns"), "ns/a"), (Some(""), "a"), (None, "a")] {
            assert_eq!(&*object_key(namespace, "a".into()), key, "{namespace:?}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused_with_what_belongs_there() {
        let mut five = serde_json::Deserializer::from_str("5");
        let refusal = shared_text(&mut five).unwrap_err().to_string();
        assert!(refusal.contains("expected a string at"), "{refusal}");
        let mut five = serde_json::Deserializer::from_str("5");
        let refusal = resource_version(&mut five).unwrap_err().to_string();
        assert!(refusal.contains("expected a resource version: a string of digits"), "{refusal}");
    }
}
