//! The objects, the handlers, and the two locks: which one protects what is the whole design.
//!
//! - `handlers` is the *dispatch lock*. It is held while the store changes and the change is
//!   delivered, so that handlers hear of all changes in one order and a late subscriber or a
//!   frozen reader stands between two changes, never inside one.
//! - `objects` is held for writing only while the map changes, never while handlers run. So a
//!   handler may read the store, and a reader never waits for a handler.
//!
//! Writers take both, dispatch first. Whoever holds the dispatch lock can therefore read the map,
//! also twice on one thread, without a writer waiting in between.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use model::Cached;
use parking_lot::{Mutex, RwLock};

use crate::Delta;
use crate::staged::Objects;

type Handler<T> = Box<dyn Fn(Delta<'_, T>) + Send + Sync>;

pub(crate) struct Store<T> {
    handlers: Mutex<Vec<Handler<T>>>,
    objects: RwLock<Objects<T>>,
}

impl<T: Cached> Store<T> {
    pub(crate) fn new() -> Self {
        Self { handlers: Mutex::default(), objects: RwLock::new(HashMap::new()) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<T>> {
        self.objects.read().get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.read().len()
    }

    pub(crate) fn frozen<R>(&self, read: impl FnOnce(&Objects<T>) -> R) -> R {
        let _dispatch = self.handlers.lock();
        read(&self.objects.read())
    }

    pub(crate) fn subscribe(&self, handler: Handler<T>) {
        let mut handlers = self.handlers.lock();
        for object in in_order(&self.objects.read()) {
            handler(Delta::Added(object));
        }
        handlers.push(handler);
    }

    /// Takes an object that was added or changed, unless a newer copy is here.
    pub(crate) fn upsert(&self, object: T) {
        let handlers = self.handlers.lock();
        let mut objects = self.objects.write();
        // The same version is the copy we have.
        if known_version(&objects, &object) >= Some(object.resource_version()) {
            return;
        }
        let new = Arc::new(object);
        // Out and in again, not replaced: a replaced value keeps the old key, which is the old
        // object's name, and every Node that ever changed would hold its name twice.
        let old = objects.remove(new.key());
        objects.insert(Arc::clone(new.key()), Arc::clone(&new));
        drop(objects);
        deliver_change(&handlers, old.as_ref(), &new);
    }

    /// Takes the last state of an object that was deleted, unless its successor is here.
    pub(crate) fn remove(&self, last: T) {
        let handlers = self.handlers.lock();
        let mut objects = self.objects.write();
        // The API server gives a deletion a version of its own. From one that does not, a
        // deletion at the version we have must not be missed.
        if known_version(&objects, &last) > Some(last.resource_version()) {
            return;
        }
        let Some(known) = objects.remove(last.key()) else { return };
        drop(objects);
        let gone = if known.uid() == last.uid() { Arc::new(last) } else { known };
        deliver(&handlers, || Delta::Deleted(&gone));
    }

    /// Takes a complete list for the state of everything. Deletions are delivered first: they
    /// may free what the additions need.
    pub(crate) fn replace(&self, listed: Objects<T>) {
        let handlers = self.handlers.lock();
        let old = mem::replace(&mut *self.objects.write(), listed);
        let new = self.objects.read();
        deliver(&handlers, || Delta::ListStarts);
        for gone in old.values().filter(|gone| !new.contains_key(gone.key())) {
            deliver(&handlers, || Delta::Deleted(gone));
        }
        for object in in_order(&new) {
            deliver_change(&handlers, old.get(object.key()), object);
        }
        deliver(&handlers, || Delta::ListEnds);
    }
}

/// In the order of keys, as the API server lists: what a controller does with a list is then the
/// same after every restart.
fn in_order<T: Cached>(objects: &Objects<T>) -> Vec<&Arc<T>> {
    let mut objects: Vec<_> = objects.values().collect();
    objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    objects
}

/// Version of the copy we have, less than any when there is none.
fn known_version<T: Cached>(objects: &Objects<T>, object: &T) -> Option<u64> {
    objects.get(object.key()).map(|known| known.resource_version())
}

fn deliver_change<T: Cached>(handlers: &[Handler<T>], old: Option<&Arc<T>>, new: &Arc<T>) {
    match old {
        None => deliver(handlers, || Delta::Added(new)),
        Some(old) if old.uid() != new.uid() => {
            deliver(handlers, || Delta::Deleted(old));
            deliver(handlers, || Delta::Added(new));
        }
        Some(old) if old.resource_version() == new.resource_version() => {}
        Some(old) => deliver(handlers, || Delta::Updated { old, new }),
    }
}

fn deliver<'a, T: 'a>(handlers: &[Handler<T>], delta: impl Fn() -> Delta<'a, T>) {
    for handler in handlers {
        handler(delta());
    }
}

#[cfg(test)]
mod tests;
