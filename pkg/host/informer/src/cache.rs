//! [`Cache`]: what the handles of an informer and its loop share, and [`Staged`], a list under way.

use std::collections::HashSet;
use std::sync::Arc;

use kube_api::{Cached, Decoding, Metadata, View};
use tokio::time::Instant;

use crate::comparison::digest;
use crate::decode::{self, selection};
use crate::fault::Fault;
use crate::intake::{Event, Intake, MessageHead, Page, PageHead, Staging};
use crate::metrics::{InformerMetrics, Probe, Sample};
use crate::request::{Accept, Encoding, Format};
use crate::shared::Shared;
use crate::shared::Unreadable;
use crate::source::{FirstList, Source};
use crate::store::{Objects, Store};
use crate::stream::{LONGEST_MESSAGE, LONGEST_PAGE};

pub(crate) struct Cache<T> {
    /// State that does not depend on the type of the objects.
    pub(crate) shared: Shared,
    pub(crate) store: Store<T>,
}

impl<T: Cached> Cache<T> {
    pub(crate) fn new(source: Source, metrics: &InformerMetrics, format: Format) -> Arc<Self> {
        let shared = Shared::new(source, metrics, format);
        let store = Store::new(Arc::clone(&shared.resource));
        let cache = Arc::new(Self { shared, store });
        let probe = Arc::downgrade(&cache);
        metrics.watch(probe);
        cache
    }

    fn apply(&self, event: Event<T>) -> MessageHead {
        let (shared, store) = (&self.shared, &self.store);
        let _timed = shared.metrics.processing.start_timer();
        MessageHead::Version(match event {
            Event::Added(object) | Event::Modified(object) => {
                let version = object.resource_version();
                shared.unreadables.clear(&shared.resource, object.key());
                store.upsert(object);
                version
            }
            Event::Deleted(object) => {
                let version = object.resource_version();
                shared.unreadables.clear(&shared.resource, object.key());
                store.remove(object);
                version
            }
            Event::Unreadable(object) => {
                shared.unreadables.note(&shared.resource, &shared.metrics.undecodable, &object);
                object.version
            }
            Event::UnreadableDeleted(object) => {
                shared.unreadables.clear(&shared.resource, &object.key);
                store.remove_unread(&object.key, object.version);
                object.version
            }
            Event::Bookmark(mark) => return MessageHead::Bookmark(mark),
            Event::Error(status) => return MessageHead::Error(status),
        })
    }

    /// Label of metrics that distinguishes the informers of one kind.
    fn selection(&self) -> String {
        let source = &self.shared.source;
        let mut parts = vec![source.selection()];
        if T::VIEW == View::Metadata {
            parts.push("view=metadata".to_owned());
        }
        if source.first_list == FirstList::Cached {
            parts.push("first-list=cached".to_owned());
        }
        parts.retain(|part| !part.is_empty());
        parts.join(" ")
    }
}

impl<T: Cached> Intake for Cache<T> {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn accept(&self, format: Format) -> Accept {
        Accept::of::<T>(format)
    }

    fn len(&self) -> usize {
        self.store.len()
    }

    fn digest(&self) -> u64 {
        self.store.frozen(|objects| {
            objects.values().fold(0_u64, |sum, object| sum.wrapping_add(digest(&**object)))
        })
    }

    fn take(&self, encoding: Encoding, message: &[u8]) -> Result<MessageHead, Fault> {
        let selector = self.shared.source.selector.as_ref();
        let event = selection::event::<T>(encoding, message, selector)?;
        let newest = self.shared.version();
        match event.version() {
            // Applied, it might bring back an object that was deleted.
            Some(version) if version < newest => Err(Fault::Untrusted {
                resource: Arc::clone(&self.shared.resource),
                breach: format!("an event of resource version {version} came after {newest}"),
            }),
            _ => Ok(self.apply(event)),
        }
    }

    fn stage(&self, reuse: bool) -> Box<dyn Staging + '_> {
        Box::new(Staged::new(&self.shared, &self.store, reuse))
    }

    fn clear(&self) {
        if self.store.len() > 0 {
            self.store.replace(Objects::new());
        }
    }

    fn abandon(&self, cause: &str) {
        if self.store.len() > 0 {
            self.store.restart(Objects::new(), cause);
        }
    }
}

impl<T: Cached> Probe for Cache<T> {
    fn sample(&self) -> Sample {
        let shared = &self.shared;
        let progress = shared.progress.now();
        Sample {
            resource: Arc::clone(&shared.resource),
            selection: self.selection(),
            group: shared.source.kind.group().to_owned(),
            api_version: shared.source.kind.version().to_owned(),
            objects: self.store.len(),
            synced: progress.listed.is_some(),
            dormant: progress.dormant,
            silent: shared.silent_for(),
            version: progress.version,
        }
    }
}

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
        self.shared.unreadables.note(
            &self.shared.resource,
            &self.shared.metrics.undecodable,
            unreadable,
        );
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
    fn take(&mut self, encoding: Encoding, message: &[u8]) -> Result<MessageHead, Fault> {
        let selector = self.shared.source.selector.as_ref();
        Ok(MessageHead::Version(match selection::event::<T>(encoding, message, selector)? {
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
            Event::Bookmark(mark) => return Ok(MessageHead::Bookmark(mark)),
            Event::Error(status) => return Ok(MessageHead::Error(status)),
        }))
    }

    fn take_page(&mut self, encoding: Encoding, body: &[u8]) -> Result<PageHead, Fault> {
        let selector = self.shared.source.selector.as_ref();
        let Page { version, next, items, unreadable, .. } =
            selection::page(encoding, body, selector)?;
        for object in &unreadable {
            self.keep(object);
        }
        for object in items {
            self.insert(object);
        }
        Ok(PageHead { version, next })
    }

    fn skip_too_long(&mut self, encoding: Encoding, body: &[u8]) -> Result<PageHead, Fault> {
        let Page { version, next, items, .. } = decode::page::<Metadata>(encoding, body)?;
        if items.len() > 1 {
            // This server does not keep to limits, so it is unknown which object is too long.
            return Err(Fault::PageTooLong(LONGEST_PAGE));
        }
        for object in items {
            let cause = Fault::MessageTooLong(LONGEST_MESSAGE);
            if T::DECODING == Decoding::Strict {
                let object = format!("object {:?}", object.key);
                return Err(Fault::Undecodable { object, encoding, cause: Box::new(cause) });
            }
            let (uid, version) = (object.uid.to_string(), object.resource_version);
            self.keep(&Unreadable { key: object.key, uid, version, cause: Box::new(cause) });
        }
        Ok(PageHead { version, next })
    }

    fn contradiction(&self, known: u64) -> Option<Arc<str>> {
        let is_followed = |object: &T| match self.store.get(object.key()) {
            Some(copy) if same_version(&*copy, object) => true,
            copy => {
                object.resource_version()
                    > copy.map_or(known, |it| known.max(it.resource_version()))
            }
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
            format!("the resource version of {resource} went back from {known} to {version}")
        } else {
            format!("the history of {resource} up to resource version {known} has changed")
        };
        self.store.restart(self.objects, &cause);
        self.shared.note_restart(version, begun);
        self.shared.unreadables.retain(resource, &self.unreadable);
    }
}

fn same_version<T: Cached>(one: &T, other: &T) -> bool {
    one.resource_version() == other.resource_version() && one.uid() == other.uid()
}
