//! [`OwnWrites`]: the versions that this process wrote last, so that no worker reads an older cache.
//!
//! Whoever writes notes the answer here by the object's key; before a key is worked on, the worker
//! waits until the informer's cache shows that write (`rule:read-your-writes`). Pure bookkeeping:
//! the waiting is the informer's.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The least that a cache must show of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnWrite {
    /// The newest resourceVersion that an answer to a write of ours carried; 0 for none.
    pub version: u64,
    /// UID of the object that we saw deleted.
    pub deleted: Option<Arc<str>>,
}

impl OwnWrite {
    /// A write that made this version.
    pub fn version(version: u64) -> Self {
        Self { version, deleted: None }
    }

    /// A write that ended the object of this UID. Its answer carries no version.
    pub fn deleted(uid: Arc<str>) -> Self {
        Self { version: 0, deleted: Some(uid) }
    }

    /// Whether a cache shows it that holds `cached` (UID and version) under the key and has seen
    /// everything of the collection up to the version `seen`: versions of one resource are one
    /// sequence, so whoever has seen a later one has seen this one.
    pub fn is_shown(&self, cached: Option<(&str, u64)>, seen: u64) -> bool {
        let newest = cached.map_or(seen, |(_, version)| version.max(seen));
        let still_there =
            self.deleted.as_deref().is_some_and(|gone| cached.is_some_and(|(uid, _)| uid == gone));
        newest >= self.version && !still_there
    }

    fn join(&mut self, later: Self) {
        self.version = self.version.max(later.version);
        if later.deleted.is_some() {
            self.deleted = later.deleted;
        }
    }
}

/// The last own write of each key that no cache is known to show yet. One value for one source of
/// objects; clones share it. Holds only keys that were written since they were last worked on, and
/// of keys without a worker no more than a cache lags behind
/// ([`OwnWrites::forget_if_many`]).
#[derive(Clone, Debug, Default)]
pub struct OwnWrites(Arc<Mutex<Writes>>);

#[derive(Debug, Default)]
struct Writes {
    by_key: HashMap<Arc<str>, OwnWrite>,
    /// Left when it was last looked which of them a cache shows.
    left: usize,
}

/// Below this number of keys no sweep for outdated ones is made.
const FEW: usize = 1024;

impl OwnWrites {
    /// Adds a write to what a cache must show of this key: its name, or `namespace/name`.
    pub fn note(&self, key: &str, write: OwnWrite) {
        let mut writes = self.0.lock();
        match writes.by_key.get_mut(key) {
            Some(before) => before.join(write),
            None => drop(writes.by_key.insert(Arc::from(key), write)),
        }
    }

    /// When the keys have become many, forgets those whose write `is_shown`: an object that is
    /// written and is no key of a queue would never be forgotten otherwise. A look at all costs no
    /// more than noting them did.
    pub fn forget_if_many(&self, is_shown: impl Fn(&str, &OwnWrite) -> bool) {
        let mut writes = self.0.lock();
        if writes.by_key.len() >= FEW.max(2 * writes.left) {
            writes.by_key.retain(|key, write| !is_shown(key, write));
            writes.left = writes.by_key.len();
        }
    }

    /// The write that a cache must show before this key is worked on; `None` when any cache will do.
    pub fn last(&self, key: &str) -> Option<OwnWrite> {
        self.0.lock().by_key.get(key).cloned()
    }

    /// A cache shows `write`: forgets it, unless another one has been noted since.
    pub fn shown(&self, key: &str, write: &OwnWrite) {
        let mut writes = self.0.lock();
        if writes.by_key.get(key) == Some(write) {
            writes.by_key.remove(key);
        }
    }

    /// True when no key waits for a cache to show a write.
    pub fn is_empty(&self) -> bool {
        self.0.lock().by_key.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(writes: &OwnWrites) -> usize {
        writes.0.lock().by_key.len()
    }

    #[test]
    fn a_write_is_shown_by_its_version_or_by_a_later_one_of_the_collection() {
        let write = OwnWrite::version(7);
        for (cached, seen, shown) in [
            (None, 6, false),
            (Some(("u", 6)), 6, false),
            (Some(("u", 7)), 6, true),
            // The object left the cache's selection, or was deleted by somebody else.
            (None, 7, true),
            // Others were written since; the cache has seen them, so it has seen ours.
            (Some(("u", 5)), 8, true),
        ] {
            assert_eq!(write.is_shown(cached, seen), shown, "{cached:?}, seen up to {seen}");
        }
    }

    #[test]
    fn a_deletion_is_shown_once_that_very_object_is_out_of_the_cache() {
        let write = OwnWrite::deleted("u1".into());
        assert!(!write.is_shown(Some(("u1", 9)), 9));
        assert!(write.is_shown(None, 0));
        assert!(write.is_shown(Some(("u2", 12)), 9), "its successor is another object");
    }

    #[test]
    fn of_several_writes_of_a_key_all_must_be_shown() {
        let writes = OwnWrites::default();
        writes.note("ns/a", OwnWrite::version(8));
        writes.note("ns/a", OwnWrite::deleted("u1".into()));
        // Noted late by another task: the older version changes nothing.
        writes.note("ns/a", OwnWrite::version(7));
        let last = writes.last("ns/a").unwrap();
        assert_eq!(last, OwnWrite { version: 8, deleted: Some("u1".into()) });
        assert_eq!(writes.last("ns/b"), None);
    }

    #[test]
    fn writes_of_idle_keys_are_forgotten_once_a_cache_shows_them() {
        let writes = OwnWrites::default();
        let mut most = 0;
        for version in 0..20_000 {
            writes.note(&format!("ns/{version}"), OwnWrite::version(version));
            most = most.max(kept(&writes));
            // The cache lags five hundred versions behind.
            writes.forget_if_many(|_, write| write.version + 500 < version);
        }
        assert!(most <= FEW.max(2 * 501), "{most} are held");
        assert_eq!(writes.last("ns/19999"), Some(OwnWrite::version(19_999)), "not shown yet");
    }

    #[test]
    fn what_no_cache_shows_is_kept_however_many_they_are() {
        let writes = OwnWrites::default();
        for version in 0..5_000 {
            writes.note(&format!("ns/{version}"), OwnWrite::version(version));
            writes.forget_if_many(|_, _| false);
        }
        assert_eq!(kept(&writes), 5_000);
    }

    #[test]
    fn a_write_noted_while_the_cache_caught_up_with_the_one_before_is_not_forgotten() {
        let writes = OwnWrites::default();
        writes.note("a", OwnWrite::version(5));
        let waited_for = writes.last("a").unwrap();
        assert!(!writes.is_empty());
        writes.note("a", OwnWrite::version(6));
        writes.shown("a", &waited_for);
        assert_eq!(writes.last("a"), Some(OwnWrite::version(6)));
        writes.shown("a", &OwnWrite::version(6));
        assert!(writes.is_empty());
    }

    #[test]
    fn the_keys_are_looked_through_when_they_are_many_and_again_when_they_have_doubled() {
        let writes = OwnWrites::default();
        for (noted, looked_through) in [(1023, 0), (1024, 1024), (2047, 0), (2048, 2048)] {
            for number in kept(&writes)..noted {
                writes.note(&number.to_string(), OwnWrite::version(1));
            }
            let looks = std::cell::Cell::new(0);
            writes.forget_if_many(|_, _| {
                looks.set(looks.get() + 1);
                false
            });
            assert_eq!(looks.get(), looked_through, "{noted} keys");
        }
    }
}
