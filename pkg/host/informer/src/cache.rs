//! [`Cache`]: what the handles of an informer and its loop both touch. The loop sees it as an
//! [`Intake`].

use std::sync::Arc;

use kube_api::{Cached, View};

use crate::decode;
use crate::encoding::{Accept, Encoding, Format};
use crate::fault::Fault;
use crate::gauges::{Probe, Sample};
use crate::intake::{Intake, Staging};
use crate::message::{Event, Word};
use crate::metrics::InformerMetrics;
use crate::objects::Objects;
use crate::shared::Shared;
use crate::source::{FirstList, Source};
use crate::staged::Staged;
use crate::store::Store;

pub(crate) struct Cache<T> {
    /// What does not depend on the type.
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

    fn apply(&self, event: Event<T>) -> Word {
        let (shared, store) = (&self.shared, &self.store);
        let _timed = shared.metrics.processing.start_timer();
        Word::Version(match event {
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
                shared.unreadables.note(&shared.resource, &shared.metrics, &object);
                object.version
            }
            Event::UnreadableDeleted(object) => {
                shared.unreadables.clear(&shared.resource, &object.key);
                store.remove_unread(&object.key, object.version);
                object.version
            }
            Event::Bookmark(mark) => return Word::Bookmark(mark),
            Event::Error(status) => return Word::Error(status),
        })
    }

    /// What tells an informer from others of its kind, for labels of metrics.
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

    fn take(&self, encoding: Encoding, message: &[u8]) -> Result<Word, Fault> {
        decode::event(encoding, message).map(|event| self.apply(event))
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
        let progress = *shared.progress.borrow();
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
