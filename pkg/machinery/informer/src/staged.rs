//! What a list has brought so far, kept apart from the store until the list is complete.

use std::collections::HashMap;
use std::sync::Arc;

use model::Cached;

use crate::store::Store;

/// Objects by key, as the store holds them.
pub(crate) type Objects<T> = HashMap<Arc<str>, Arc<T>>;

pub(crate) struct Staged<'a, T> {
    store: &'a Store<T>,
    objects: Objects<T>,
}

impl<'a, T: Cached> Staged<'a, T> {
    pub(crate) fn new(store: &'a Store<T>) -> Self {
        Self { store, objects: HashMap::with_capacity(store.len()) }
    }

    pub(crate) fn insert(&mut self, object: T) {
        // After a relist most objects are what they were. Keeping the old copy means that the
        // memory of a relist is that of the map, and that handlers are spared an update.
        let object = match self.store.get(object.key()) {
            Some(known) if same_version(&*known, &object) => known,
            _ => Arc::new(object),
        };
        self.objects.insert(Arc::clone(object.key()), object);
    }

    pub(crate) fn remove(&mut self, object: &T) {
        self.objects.remove(object.key());
    }

    pub(crate) fn into_objects(self) -> Objects<T> {
        self.objects
    }
}

fn same_version<T: Cached>(one: &T, other: &T) -> bool {
    one.resource_version() == other.resource_version() && one.uid() == other.uid()
}
