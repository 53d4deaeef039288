//! [`Store`]: the objects of a cluster in all their versions, as etcd keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// An object in one version.
pub type Object = Arc<Value>;

/// Where an object is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Plural name of the kind.
    pub resource: &'static str,
    /// Empty for kinds without one.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// Version of the store after it.
    pub revision: u64,
    /// The object.
    pub key: Key,
    /// The object before it, unless it was created.
    pub before: Option<Object>,
    /// The object after it, unless it was deleted.
    pub after: Option<Object>,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    revision: u64,
    compacted: u64,
    versions: BTreeMap<Key, Vec<(u64, Option<Object>)>>,
    changes: Vec<Change>,
}

impl Default for Store {
    /// An empty store, which is not at its first version: 0 and 1 have meanings of their own.
    fn default() -> Self {
        Self { revision: 100, compacted: 0, versions: BTreeMap::new(), changes: Vec::new() }
    }
}

impl Store {
    /// The newest version.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest version that can still be read.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Forgets all versions before this one.
    pub fn compact(&mut self, revision: u64) {
        self.compacted = revision.min(self.revision);
    }

    /// The newest version of an object.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.versions.get(key)?.last()?.1.as_ref()
    }

    /// An object as it was at a version.
    pub fn get_at(&self, key: &Key, revision: u64) -> Option<&Object> {
        at(self.versions.get(key)?, revision)
    }

    /// The objects of a kind, of one namespace or of all, as they were at a version.
    pub fn list(&self, resource: &'static str, namespace: &str, revision: u64) -> Vec<&Object> {
        let (namespace_of_first, name) = (namespace.to_owned(), String::new());
        let first = Key { resource, namespace: namespace_of_first, name };
        let kind = self.versions.range(first..).take_while(|(key, _)| key.resource == resource);
        let within = kind.filter(|(key, _)| namespace.is_empty() || key.namespace == namespace);
        within.filter_map(|(_, versions)| at(versions, revision)).collect()
    }

    /// Stores an object, or deletes it. Returns the object with its version; of a deleted one, with that
    /// of the deletion.
    pub fn write(&mut self, key: &Key, object: Option<Value>) -> Object {
        self.revision += 1;
        let revision = self.revision;
        let before = self.get(key).cloned();
        let is_deletion = object.is_none();
        let mut object = object.or_else(|| before.as_deref().cloned()).unwrap_or_default();
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let object = Arc::new(object);
        let after = (!is_deletion).then(|| Arc::clone(&object));
        self.versions.entry(key.clone()).or_default().push((revision, after.clone()));
        self.changes.push(Change { revision, key: key.clone(), before, after });
        object
    }

    /// The changes after a version.
    pub fn changes_after(&self, revision: u64) -> &[Change] {
        let first = self.changes.partition_point(|change| change.revision <= revision);
        &self.changes[first..]
    }
}

impl Change {
    /// The event by which a watch shows the change: its type and the object.
    pub fn event(&self) -> (&'static str, Value) {
        match (&self.before, &self.after) {
            (None, Some(after)) => ("ADDED", Value::clone(after)),
            (Some(_), Some(after)) => ("MODIFIED", Value::clone(after)),
            (before, None) => {
                let mut object = before.as_deref().cloned().unwrap_or_default();
                object["metadata"]["resourceVersion"] = self.revision.to_string().into();
                ("DELETED", object)
            }
        }
    }
}

fn at(versions: &[(u64, Option<Object>)], revision: u64) -> Option<&Object> {
    let end = versions.partition_point(|(since, _)| *since <= revision);
    versions[..end].last()?.1.as_ref()
}
