//! [`Store`]: the resources of one kind with their past, so that a read can show how it was some
//! seconds ago.

use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct Store<T> {
    versions: BTreeMap<String, Vec<(u64, Option<T>)>>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { versions: BTreeMap::new() }
    }
}

impl<T: Clone> Store<T> {
    pub(crate) fn put(&mut self, id: &str, now: u64, value: T) {
        self.versions.entry(id.to_owned()).or_default().push((now, Some(value)));
    }

    pub(crate) fn remove(&mut self, id: &str, now: u64) {
        self.versions.entry(id.to_owned()).or_default().push((now, None));
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.versions.get(id)?.last()?.1.as_ref()
    }

    pub(crate) fn edit(&mut self, id: &str, now: u64, change: impl FnOnce(&mut T)) {
        if let Some(mut value) = self.get(id).cloned() {
            change(&mut value);
            self.put(id, now, value);
        }
    }

    /// How many there have ever been.
    pub(crate) fn ever(&self) -> usize {
        self.versions.len()
    }

    /// The resources on AWS, as far as they were read.
    pub(crate) fn all(&self) -> Vec<T> {
        self.versions.values().filter_map(|past| past.last()?.1.clone()).collect()
    }

    /// The stored state before the last write.
    pub(crate) fn at(&self, time: u64) -> Vec<T> {
        let then = |past: &Vec<(u64, Option<T>)>| {
            past.iter().rev().find(|(since, _)| *since <= time)?.1.clone()
        };
        self.versions.values().filter_map(then).collect()
    }

    /// Whether it came into being after this time.
    pub(crate) fn is_younger(&self, id: &str, time: u64) -> bool {
        let first = self.versions.get(id).and_then(|past| past.first());
        first.is_some_and(|(since, _)| *since > time)
    }
}
