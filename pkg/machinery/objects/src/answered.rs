//! [`Answered`]: the newest copies that answers to own writes brought, so that the next change of an
//! object begins with what the last one made of it, also while the cache does not show that yet.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Object, Schema};

/// More are not kept; without its copy a change costs a conflict and a read.
const MOST: usize = 256;

/// By key.
type Copies<S> = HashMap<Arc<str>, Arc<Object<S>>>;

/// Clones share the copies.
pub(crate) struct Answered<S: Schema>(Arc<Mutex<Copies<S>>>);

impl<S: Schema> Answered<S> {
    /// Keeps what an answer brought, unless the write was the object's end.
    pub(crate) fn keep(&self, object: &Arc<Object<S>>) {
        let mut copies = self.0.lock();
        let key = &object.metadata.key;
        if object.metadata.has_ended() {
            copies.remove(key);
            return;
        }
        if copies.len() >= MOST && !copies.contains_key(key) {
            copies.clear();
        }
        let kept = copies.entry(Arc::clone(key)).or_insert_with(|| Arc::clone(object));
        if !is_newer(kept, object) {
            *kept = Arc::clone(object);
        }
    }

    /// The newest copy of this object. One that is not newer than what the caller has is not needed
    /// any more.
    pub(crate) fn newest(&self, object: &Arc<Object<S>>) -> Arc<Object<S>> {
        let mut copies = self.0.lock();
        match copies.get(&object.metadata.key) {
            Some(kept) if is_newer(kept, object) => return Arc::clone(kept),
            Some(_) => drop(copies.remove(&object.metadata.key)),
            None => {}
        }
        Arc::clone(object)
    }

    /// The copy is of no use: the server has another one.
    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }
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
        Self(Arc::default())
    }
}
