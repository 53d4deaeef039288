//! State of own writes: [`Answered`] keeps the newest copies from answers, so that the next
//! change of an object begins with what the last one made of it although the cache lags;
//! [`OpenWrites`] says until when the server may still carry out a write of unknown outcome.

use std::sync::Arc;

use parking_lot::Mutex;
use resilience::Lru;
use tokio::time::{Instant, sleep_until};

use crate::object::{Object, Schema};

/// Bytes of all copies. Beyond them the oldest go; without its copy a change costs a conflict and a
/// read.
const MOST: usize = 4 << 20;
/// Estimated bytes of a copy in addition to its text: typed views, keys.
const BESIDE_TEXT: usize = 1 << 10;

/// Clones share the copies.
pub(crate) struct Answered<S: Schema>(Arc<Mutex<Copies<S>>>);

struct Copies<S: Schema> {
    /// By key.
    kept: Lru<Arc<str>, Arc<Object<S>>>,
    bytes: usize,
    /// Bytes of all copies at most.
    most: usize,
}

impl<S: Schema> Answered<S> {
    /// Keeps nothing.
    pub(crate) fn nothing() -> Self {
        Self::with(0)
    }

    fn with(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Copies { kept: Lru::new(usize::MAX), bytes: 0, most })))
    }

    /// Keeps what an answer brought, unless the write was the object's end.
    pub(crate) fn keep(&self, object: &Arc<Object<S>>) {
        let mut copies = self.0.lock();
        let key = &object.metadata.key;
        if object.metadata.has_ended() {
            copies.remove(key);
        } else if !copies.kept.get(key).is_some_and(|kept| is_newer(kept, object)) {
            copies.insert(object);
        }
    }

    /// The newest copy of this object. One that is not newer than what the caller has is not needed
    /// any more.
    pub(crate) fn newest(&self, object: &Arc<Object<S>>) -> Arc<Object<S>> {
        let mut copies = self.0.lock();
        match copies.kept.get(&object.metadata.key) {
            Some(kept) if is_newer(kept, object) => return Arc::clone(kept),
            Some(_) => copies.remove(&object.metadata.key),
            None => {}
        }
        Arc::clone(object)
    }

    /// The copy is of no use: the server has another one.
    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

impl<S: Schema> Copies<S> {
    fn insert(&mut self, object: &Arc<Object<S>>) {
        let key = &object.metadata.key;
        self.remove(key);
        self.bytes += bytes_of(object);
        self.kept.insert(key, Arc::clone(object));
        while self.bytes > self.most
            && let Some(oldest) = self.kept.pop_oldest()
        {
            self.bytes -= bytes_of(&oldest);
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some(object) = self.kept.remove(key) {
            self.bytes -= bytes_of(&object);
        }
    }
}

fn bytes_of<S: Schema>(object: &Object<S>) -> usize {
    object.size() + BESIDE_TEXT
}

fn is_newer<S: Schema>(copy: &Object<S>, than: &Object<S>) -> bool {
    let (copy, than) = (&copy.metadata, &than.metadata);
    copy.uid == than.uid && copy.resource_version > than.resource_version
}

impl<S: Schema> Clone for Answered<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Schema> Default for Answered<S> {
    fn default() -> Self {
        Self::with(MOST)
    }
}

/// The writes of unknown outcome of one controller; clones are the same. Every
/// [`crate::ObjectClient`] has one, and several can share one.
#[derive(Clone, Debug, Default)]
pub struct OpenWrites {
    /// When the server has given up the last of them.
    until: Arc<Mutex<Option<Instant>>>,
}

impl OpenWrites {
    /// Notes a write that the server gives up at this time.
    pub fn note(&self, settled_at: Instant) {
        let mut until = self.until.lock();
        *until = (*until).max(Some(settled_at));
    }

    /// Waits until the server no longer carries out any open write, which is at most the time limit of one attempt: for
    /// a controller that stops, before its lease is given back.
    pub async fn settled(&self) {
        while let Some(until) = self.open_until() {
            sleep_until(until).await;
        }
    }

    fn open_until(&self) -> Option<Instant> {
        self.until.lock().filter(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests;
