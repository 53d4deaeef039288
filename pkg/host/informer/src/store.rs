//! The objects of an informer, its subscribers, and the two locks:
//!
//! - `subscribers` is the *dispatch lock*. It is held while the store changes and the change is
//!   delivered, so that handlers get all changes in one order and a late subscriber or a frozen reader
//!   stands between two changes, never inside one.
//! - `objects` is held for writing only while the map changes, never while handlers run. So a
//!   handler may read the store, and a reader never waits for a handler.
//!
//! Writers take both, dispatch first. So the holder of the dispatch lock can read the map, also twice
//! on one thread, without a writer waiting in between.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::mem;
use std::sync::Arc;

use kube_api::Cached;
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::subscribers::{Delta, Handler, Membership, Session, Subscribers};
use crate::sync::{AtomicBool, Ordering};

pub(crate) struct Store<T> {
    subscribers: Mutex<Subscribers<T>>,
    /// Somebody left during a delivery, which could not free its handler.
    unswept: AtomicBool,
    objects: RwLock<Objects<T>>,
}

impl<T: Cached> Store<T> {
    pub(crate) fn new(resource: Arc<str>) -> Self {
        let subscribers = Mutex::new(Subscribers::new(resource));
        let unswept = AtomicBool::new(false);
        Self { subscribers, unswept, objects: RwLock::new(Objects::new()) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<T>> {
        self.objects.read().get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.read().len()
    }

    pub(crate) fn frozen<R>(&self, read: impl FnOnce(&Objects<T>) -> R) -> R {
        let _dispatch = self.subscribers.lock();
        read(&self.objects.read())
    }

    pub(crate) fn subscribe(&self, handler: Handler<T>, session: Session) -> Membership {
        let mut subscribers = self.subscribers.lock();
        subscribers.add(handler, session, self.objects.read().in_order())
    }

    /// Frees the handlers that have left. Those of a delivery under way are freed before the next.
    pub(crate) fn sweep(&self) {
        // Not `store`: loom would let a swap of a delivery overwrite it without having read it.
        self.unswept.swap(true, Ordering::Release);
        // A handler may drop its own subscription, on the thread that holds the lock.
        if let Some(mut subscribers) = self.subscribers.try_lock() {
            self.sweep_left(&mut subscribers);
        }
    }

    fn sweep_left(&self, subscribers: &mut Subscribers<T>) {
        if self.unswept.swap(false, Ordering::AcqRel) {
            subscribers.sweep();
        }
    }

    /// Takes the dispatch lock for a delivery.
    fn dispatch(&self) -> MutexGuard<'_, Subscribers<T>> {
        let mut subscribers = self.subscribers.lock();
        self.sweep_left(&mut subscribers);
        subscribers
    }

    /// Takes an object that was added or changed, unless a newer copy is here.
    pub(crate) fn upsert(&self, mut object: T) {
        let subscribers = self.dispatch();
        let mut objects = self.objects.write();
        if let Some(known) = objects.get(object.key()) {
            // The same version is the copy we have.
            if known.resource_version() >= object.resource_version() {
                return;
            }
            object.share_with(known);
        }
        let new = Arc::new(object);
        let old = objects.insert(Arc::clone(&new));
        drop(objects);
        deliver_change(&subscribers, old.as_ref(), &new);
    }

    /// Takes the last state of an object that was deleted, unless its successor is here.
    pub(crate) fn remove(&self, last: T) {
        let subscribers = self.dispatch();
        let mut objects = self.objects.write();
        // The API server gives a deletion a version of its own. From one that does not, a
        // deletion at the version we have must not be missed.
        if known_version(&objects, &last) > Some(last.resource_version()) {
            return;
        }
        let Some(known) = objects.remove(last.key()) else { return };
        drop(objects);
        let gone = if known.uid() == last.uid() { Arc::new(last) } else { known };
        subscribers.deliver(|| Delta::Deleted(&gone));
    }

    /// Takes the deletion of an object whose last state cannot be read.
    pub(crate) fn remove_unread(&self, key: &str, version: u64) {
        let subscribers = self.dispatch();
        let mut objects = self.objects.write();
        if objects.get(key).is_none_or(|known| known.resource_version() > version) {
            return;
        }
        let Some(gone) = objects.remove(key) else { return };
        drop(objects);
        subscribers.deliver(|| Delta::Deleted(&gone));
    }

    /// Takes a complete list for the state of everything. Deletions are delivered first: they
    /// may free what the additions need. Both come in the order of keys.
    pub(crate) fn replace(&self, listed: Objects<T>) {
        let subscribers = self.dispatch();
        let old = mem::replace(&mut *self.objects.write(), listed);
        let new = self.objects.read();
        subscribers.deliver(|| Delta::ListStarts);
        let mut all_gone: Vec<_> = old.values().filter(|it| !new.contains_key(it.key())).collect();
        all_gone.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        for gone in all_gone {
            subscribers.deliver(|| Delta::Deleted(gone));
        }
        for object in new.in_order() {
            deliver_change(&subscribers, old.get(object.key()), object);
        }
        subscribers.deliver(|| Delta::ListEnds);
    }

    /// Tells of everything again, as of objects that changed into what they are.
    pub(crate) fn redeliver(&self) {
        let subscribers = self.dispatch();
        let objects = self.objects.read();
        for object in objects.in_order() {
            subscribers.deliver(|| Delta::Updated { old: object, new: object });
        }
    }

    /// Takes a list of another history: everything delivered before is void, so the difference is
    /// not delivered, and every session ends.
    pub(crate) fn restart(&self, listed: Objects<T>, cause: &str) {
        let mut subscribers = self.subscribers.lock();
        *self.objects.write() = listed;
        subscribers.end(|session| session.end(cause));
    }

    /// Ends every session because of a panic.
    pub(crate) fn panicked(&self, cause: &str) {
        self.subscribers.lock().end(|session| session.end_by_panic(cause));
    }
}

/// Version of our copy; `None`, which is less than any, without one.
fn known_version<T: Cached>(objects: &Objects<T>, object: &T) -> Option<u64> {
    objects.get(object.key()).map(|known| known.resource_version())
}

fn deliver_change<T: Cached>(subscribers: &Subscribers<T>, old: Option<&Arc<T>>, new: &Arc<T>) {
    match old {
        None => subscribers.deliver(|| Delta::Added(new)),
        Some(old) if old.uid() != new.uid() => {
            subscribers.deliver(|| Delta::Deleted(old));
            subscribers.deliver(|| Delta::Added(new));
        }
        Some(old) if old.resource_version() == new.resource_version() => {}
        Some(old) => subscribers.deliver(|| Delta::Updated { old, new }),
    }
}

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

    /// True when there are no objects.
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
        let mut objects: Vec<(&str, &Arc<T>)> =
            self.values().map(|object| (&**object.key(), object)).collect();
        objects.sort_unstable_by_key(|(key, _)| *key);
        objects.into_iter().map(|(_, object)| object).collect()
    }
}

impl<T: Cached> FromIterator<Arc<T>> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = Arc<T>>>(objects: I) -> Self {
        Self(objects.into_iter().map(Entry).collect())
    }
}

#[cfg(test)]
mod tests;
