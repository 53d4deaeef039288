//! What a list has brought so far, kept apart from the store until the list is complete.

use std::collections::HashSet;
use std::sync::Arc;

use kube_api::Cached;
use tokio::time::Instant;

use crate::decode;
use crate::encoding::Encoding;
use crate::fault::Fault;
use crate::intake::Staging;
use crate::message::{Event, Page, PageHead, Word};
use crate::objects::Objects;
use crate::shared::Shared;
use crate::source::FirstList;
use crate::store::Store;
use crate::unreadable::Unreadable;

pub(crate) struct Staged<'a, T> {
    shared: &'a Shared,
    store: &'a Store<T>,
    /// The store's copies are of the server's history.
    reuse: bool,
    objects: Objects<T>,
    /// Keys of those that the list has and that cannot be read.
    unreadable: HashSet<Arc<str>>,
}

impl<'a, T: Cached> Staged<'a, T> {
    pub(crate) fn new(shared: &'a Shared, store: &'a Store<T>, reuse: bool) -> Self {
        let objects = Objects::with_capacity(store.len());
        Self { shared, store, reuse, objects, unreadable: HashSet::new() }
    }

    fn insert(&mut self, mut object: T) {
        self.shared.unreadables.clear(&self.shared.resource, object.key());
        self.unreadable.remove(object.key());
        // After a relist most objects are what they were. Keeping the old copy means that the
        // memory of a relist is that of the map, and that handlers are spared an update.
        let object = match self.store.get(object.key()) {
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
    fn keep(&mut self, unreadable: &Unreadable) {
        self.shared.unreadables.note(&self.shared.resource, &self.shared.metrics, unreadable);
        self.unreadable.insert(Arc::clone(&unreadable.key));
        let known = self.store.get(&unreadable.key);
        if let Some(known) = known.filter(|known| self.reuse && known.uid() == unreadable.uid) {
            self.objects.insert(known);
        }
    }

    fn remove(&mut self, key: &str) {
        self.objects.remove(key);
        self.unreadable.remove(key);
    }
}

impl<T: Cached> Staging for Staged<'_, T> {
    fn take(&mut self, encoding: Encoding, message: &[u8]) -> Result<Word, Fault> {
        Ok(Word::Version(match decode::event::<T>(encoding, message)? {
            Event::Added(object) | Event::Modified(object) => {
                let version = object.resource_version();
                self.insert(object);
                version
            }
            Event::Deleted(object) => {
                self.remove(object.key());
                object.resource_version()
            }
            Event::Unreadable(object) => {
                self.keep(&object);
                object.version
            }
            Event::UnreadableDeleted(object) => {
                self.remove(&object.key);
                object.version
            }
            Event::Bookmark(mark) => return Ok(Word::Bookmark(mark)),
            Event::Error(status) => return Ok(Word::Error(status)),
        }))
    }

    fn take_page(&mut self, encoding: Encoding, body: &[u8]) -> Result<PageHead, Fault> {
        let Page { version, next, items, unreadable } = decode::page(encoding, body)?;
        for object in &unreadable {
            self.keep(object);
        }
        for object in items {
            self.insert(object);
        }
        Ok(PageHead { version, next })
    }

    fn contradiction(&self, known: u64) -> Option<Arc<str>> {
        let is_followed = |object: &T| {
            let copy = self.store.get(object.key());
            object.resource_version() > known || copy.is_some_and(|it| same_version(&*it, object))
        };
        let contradicts = self.objects.values().find(|object| !is_followed(object));
        contradicts.map(|object| Arc::clone(object.key()))
    }

    fn apply(self: Box<Self>, version: u64, begun: Instant, truth: FirstList) {
        self.store.replace(self.objects);
        self.shared.note_list(version, begun, truth);
        self.shared.unreadables.retain(&self.shared.resource, &self.unreadable);
    }

    fn restart(self: Box<Self>, version: u64, begun: Instant) {
        let (known, resource) = (self.shared.version(), &self.shared.resource);
        let cause = if version < known {
            format!("the history of {resource} went back from version {known} to {version}")
        } else {
            format!("the history of {resource} up to version {known} is another one")
        };
        self.store.restart(self.objects, &cause);
        self.shared.note_restart(version, begun);
        self.shared.unreadables.retain(resource, &self.unreadable);
    }
}

fn same_version<T: Cached>(one: &T, other: &T) -> bool {
    one.resource_version() == other.resource_version() && one.uid() == other.uid()
}
