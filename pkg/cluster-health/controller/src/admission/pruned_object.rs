//! [`PrunedObject`]: a cached object with only the fields that rules read: Clusters and Machines hold
//! passwords.

use std::marker::PhantomData;
use std::str::Split;
use std::sync::Arc;

use kube_api::{Cached, Decoding, object_key};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// The fields that are kept of a kind.
pub(super) trait Fields: Send + Sync + 'static {
    /// Paths of fields; a name with `[]` is a list, of whose items the rest of the path is kept.
    const PATHS: &'static [&'static str];
}

/// The fields that are kept of every kind.
const NAMES: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// One object.
pub(super) struct PrunedObject<F> {
    key: Arc<str>,
    uid: Box<str>,
    version: u64,
    /// Reviews under way share them.
    pub(super) fields: Arc<Value>,
    of: PhantomData<fn() -> F>,
}

impl<F: Fields> Cached for PrunedObject<F> {
    const DECODING: Decoding = Decoding::Tolerant;

    fn key(&self) -> &Arc<str> {
        &self.key
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> u64 {
        self.version
    }
}

impl<'de, F: Fields> Deserialize<'de> for PrunedObject<F> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let whole = Value::deserialize(from)?;
        let text = |name: &str| whole["metadata"][name].as_str();
        let missing = || D::Error::custom("the object has no name, UID or version");
        let name = text("name").ok_or_else(missing)?;
        let uid = text("uid").ok_or_else(missing)?;
        let version = text("resourceVersion").and_then(|version| version.parse().ok());
        let mut fields = json!({});
        for path in NAMES.iter().chain(F::PATHS) {
            keep(&whole, path.split('.'), &mut fields);
        }
        Ok(Self {
            key: object_key(text("namespace"), name.into()),
            uid: uid.into(),
            version: version.ok_or_else(missing)?,
            fields: Arc::new(fields),
            of: PhantomData,
        })
    }
}

/// Copies what a path leads to.
fn keep(from: &Value, mut path: Split<'_, char>, into: &mut Value) {
    let Some(name) = path.next() else {
        *into = from.clone();
        return;
    };
    let Some(fields) = into.as_object_mut() else { return };
    match name.strip_suffix("[]") {
        None => {
            let Some(field) = from.get(name) else { return };
            keep(field, path, fields.entry(name).or_insert_with(|| json!({})));
        }
        Some(list) => {
            let Some(items) = from.get(list).and_then(Value::as_array) else { return };
            let kept = fields.entry(list).or_insert_with(|| json!([]));
            let Some(kept) = kept.as_array_mut() else { return };
            kept.resize(items.len(), json!({}));
            items.iter().zip(kept).for_each(|(item, into)| keep(item, path.clone(), into));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Example {}

    impl Fields for Example {
        const PATHS: &'static [&'static str] =
            &["spec.type", "spec.machines[].ip", "spec.machines[].port", "status.a.b"];
    }

    #[test]
    fn what_no_rule_reads_is_not_kept() {
        let whole = json!({
            "metadata": {"namespace": "n", "name": "a", "uid": "u", "resourceVersion": "7",
                "annotations": {"last": "planted"}},
            "spec": {"type": "T", "other": "planted", "machines":
                [{"ip": "1", "password": "planted"}, {"ip": "2", "port": 22}, "planted"]},
            "status": {"a": {"b": {"c": 1}, "d": "planted"}},
        });
        let kept: PrunedObject<Example> = serde_json::from_value(whole).unwrap();
        assert_eq!((&**kept.key(), kept.uid(), kept.resource_version()), ("n/a", "u", 7));
        let expected = json!({
            "metadata": {"namespace": "n", "name": "a"},
            "spec": {"type": "T", "machines": [{"ip": "1"}, {"ip": "2", "port": 22}, {}]},
            "status": {"a": {"b": {"c": 1}}},
        });
        assert_eq!(*kept.fields, expected);
        for odd in [json!({}), json!({"metadata": {"name": "a", "uid": "u"}}), json!([])] {
            assert!(serde_json::from_value::<PrunedObject<Example>>(odd).is_err());
        }
    }
}
