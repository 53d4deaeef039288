//! State of own writes: [`Answered`] keeps the newest copies from answers, so that the next
//! change of an object begins with what the last one made of it although the cache lags;
//! [`OpenWrites`] says until when the server may still carry out a write of unknown outcome.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
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
    kept: HashMap<Arc<str>, Copy<S>>,
    /// Keys by the turn of the copy.
    by_age: BTreeMap<u64, Arc<str>>,
    next_turn: u64,
    bytes: usize,
    /// Bytes of all copies at most.
    most: usize,
}

struct Copy<S: Schema> {
    turn: u64,
    object: Arc<Object<S>>,
}

impl<S: Schema> Answered<S> {
    /// Keeps nothing.
    pub(crate) fn nothing() -> Self {
        Self::with(0)
    }

    fn with(most: usize) -> Self {
        let (kept, by_age) = (HashMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Copies { kept, by_age, next_turn: 0, bytes: 0, most })))
    }

    /// Keeps what an answer brought, unless the write was the object's end.
    pub(crate) fn keep(&self, object: &Arc<Object<S>>) {
        let mut copies = self.0.lock();
        let key = &object.metadata.key;
        if object.metadata.has_ended() {
            copies.remove(key);
            return;
        }
        if copies.kept.get(key).is_some_and(|kept| is_newer(&kept.object, object)) {
            return;
        }
        copies.remove(key);
        copies.insert(object);
        copies.make_room();
    }

    /// The newest copy of this object. One that is not newer than what the caller has is not needed
    /// any more.
    pub(crate) fn newest(&self, object: &Arc<Object<S>>) -> Arc<Object<S>> {
        let mut copies = self.0.lock();
        match copies.kept.get(&object.metadata.key) {
            Some(kept) if is_newer(&kept.object, object) => return Arc::clone(&kept.object),
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
        let (key, turn) = (&object.metadata.key, self.next_turn);
        self.next_turn += 1;
        self.bytes += bytes_of(object);
        self.by_age.insert(turn, Arc::clone(key));
        self.kept.insert(Arc::clone(key), Copy { turn, object: Arc::clone(object) });
    }

    fn remove(&mut self, key: &str) {
        if let Some(Copy { turn, object }) = self.kept.remove(key) {
            self.by_age.remove(&turn);
            self.bytes -= bytes_of(&object);
        }
    }

    fn make_room(&mut self) {
        while self.bytes > self.most
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.remove(&oldest);
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
