//! Objects that cannot be decoded in a tolerant collection: each is named once, until it can be
//! read again, and counted every time (rule:strict-or-tolerant).

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{info, warn};

use crate::metrics::Counters;

/// An object of which no more than the identity can be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) key: Arc<str>,
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) cause: Box<dyn Error + Send + Sync>,
}

/// The keys that have been named.
#[derive(Default)]
pub(crate) struct Unreadables(Mutex<HashSet<Arc<str>>>);

impl Unreadables {
    pub(crate) fn note(&self, resource: &str, metrics: &Counters, object: &Unreadable) {
        metrics.undecodable.inc();
        let Unreadable { key, cause, .. } = object;
        if self.0.lock().insert(Arc::clone(key)) {
            warn!(logger = "informer", resource, object = %key, error = %cause,
                "Object cannot be read and is skipped; its last good copy stays in use");
        }
    }

    /// The object can be read, or is gone.
    pub(crate) fn clear(&self, resource: &str, key: &str) {
        let mut named = self.0.lock();
        if !named.is_empty() && named.remove(key) {
            tell_cleared(resource, key);
        }
    }

    /// A list has no other objects that cannot be read.
    pub(crate) fn retain(&self, resource: &str, listed: &HashSet<Arc<str>>) {
        self.0.lock().retain(|key| {
            let stays = listed.contains(key);
            if !stays {
                tell_cleared(resource, key);
            }
            stays
        });
    }

    #[cfg(test)]
    pub(crate) fn named(&self) -> Vec<Arc<str>> {
        self.0.lock().iter().cloned().collect()
    }
}

fn tell_cleared(resource: &str, object: &str) {
    info!(logger = "informer", resource, object, "Object can be read again, or is gone");
}
