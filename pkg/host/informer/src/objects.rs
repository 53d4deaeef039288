//! [`Objects`]: the objects of a collection, as the store and a list under way hold them.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kube_api::Cached;

/// Objects by key. An object holds its key itself, so that an entry is one pointer.
#[derive(Debug)]
pub struct Objects<T>(HashSet<Entry<T>>);

/// An object as a member of a set of keys.
#[derive(Debug)]
struct Entry<T>(Arc<T>);

impl<T: Cached> Borrow<str> for Entry<T> {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl<T: Cached> Hash for Entry<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        str::hash(self.0.key(), state);
    }
}

impl<T: Cached> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<T: Cached> Eq for Entry<T> {}

impl<T: Cached> Objects<T> {
    pub(crate) fn new() -> Self {
        Self::with_capacity(0)
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(HashSet::with_capacity(capacity))
    }

    /// Takes an object in place of the one with its key, which is returned.
    pub(crate) fn insert(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        self.0.replace(Entry(object)).map(|entry| entry.0)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<T>> {
        self.0.take(key).map(|entry| entry.0)
    }

    /// The object with this key.
    pub fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.0.get(key).map(|entry| &entry.0)
    }

    /// Whether there is an object with this key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.0.contains(key)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All objects, in no order.
    pub fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.iter().map(|entry| &entry.0)
    }

    /// The keys of all objects, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.values().map(|object| object.key())
    }

    /// In the order of keys, as the API server lists: what a controller does with a list is then
    /// the same after every restart.
    pub(crate) fn in_order(&self) -> Vec<&Arc<T>> {
        let mut objects: Vec<_> = self.values().collect();
        objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        objects
    }
}

impl<T: Cached> FromIterator<Arc<T>> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = Arc<T>>>(objects: I) -> Self {
        Self(objects.into_iter().map(Entry).collect())
    }
}
