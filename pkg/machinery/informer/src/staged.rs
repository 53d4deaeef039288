//! What a list has brought so far, kept apart from the store until the list is complete.

use std::collections::HashSet;
use std::sync::Arc;

use model::Cached;

use crate::objects::Objects;
use crate::shared::Shared;
use crate::unreadable::Unreadable;

pub(crate) struct Staged<'a, T> {
    shared: &'a Shared<T>,
    /// The store's copies are of the server's history.
    reuse: bool,
    objects: Objects<T>,
    /// Keys of those that the list has and that cannot be read.
    unreadable: HashSet<Arc<str>>,
}

impl<'a, T: Cached> Staged<'a, T> {
    pub(crate) fn new(shared: &'a Shared<T>, reuse: bool) -> Self {
        let objects = Objects::with_capacity(shared.store.len());
        Self { shared, reuse, objects, unreadable: HashSet::new() }
    }

    pub(crate) fn insert(&mut self, mut object: T) {
        self.shared.unreadables.clear(&self.shared.resource, object.key());
        self.unreadable.remove(object.key());
        // After a relist most objects are what they were. Keeping the old copy means that the
        // memory of a relist is that of the map, and that handlers are spared an update.
        let object = match self.shared.store.get(object.key()) {
            Some(known) if self.reuse && same_version(&*known, &object) => known,
            Some(known) => {
                object.share_with(&known);
                Arc::new(object)
            }
            None => Arc::new(object),
        };
        self.objects.insert(object);
    }

    /// Keeps the last good copy of an object that the list has and that cannot be read.
    pub(crate) fn keep(&mut self, unreadable: &Unreadable) {
        self.shared.unreadables.note(&self.shared.resource, &self.shared.metrics, unreadable);
        self.unreadable.insert(Arc::clone(&unreadable.key));
        let known = self.shared.store.get(&unreadable.key);
        if let Some(known) = known.filter(|known| self.reuse && known.uid() == unreadable.uid) {
            self.objects.insert(known);
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.objects.remove(key);
        self.unreadable.remove(key);
    }

    /// The complete list: its objects, and the keys of those that cannot be read.
    pub(crate) fn into_parts(self) -> (Objects<T>, HashSet<Arc<str>>) {
        (self.objects, self.unreadable)
    }
}

fn same_version<T: Cached>(one: &T, other: &T) -> bool {
    one.resource_version() == other.resource_version() && one.uid() == other.uid()
}
