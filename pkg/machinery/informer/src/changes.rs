//! [`Changes`]: a subscriber that takes its time. What it has not taken yet is kept once per key,
//! so it holds up nobody, and what waits for it is bounded by the objects it knows or could know.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::Cached;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::subscription::Subscription;
use crate::{Delta, Session};

/// What became of one object between two looks; changes in between are not seen.
#[derive(Debug)]
pub struct Change<T> {
    /// Key of the object.
    pub key: Arc<str>,
    /// What was taken last, or a later state of it when it is gone; `None` for an object that is
    /// new to this subscriber.
    pub old: Option<Arc<T>>,
    /// What there is now; `None` when it is gone. Another UID than that of `old` is another object.
    pub new: Option<Arc<T>>,
}

/// Changes of a store, to be taken one by one: `while let Some(change) = changes.next().await`.
pub struct Changes<T: Cached> {
    waiting: Arc<Waiting<T>>,
    session: Session,
    _subscription: Subscription<T>,
}

impl<T: Cached> Changes<T> {
    pub(crate) fn new(
        waiting: Arc<Waiting<T>>,
        session: Session,
        subscription: Subscription<T>,
    ) -> Self {
        Self { waiting, session, _subscription: subscription }
    }

    /// The next change, in the order in which the objects first changed since they were taken.
    /// `None` when the session has ended.
    pub async fn next(&mut self) -> Option<Change<T>> {
        loop {
            if self.session.has_ended() {
                return None;
            }
            if let Some(change) = self.waiting.take() {
                return Some(change);
            }
            tokio::select! {
                () = self.waiting.arrived.notified() => {}
                _ = self.session.ended() => {}
            }
        }
    }
}

/// What a subscriber has not taken yet.
pub(crate) struct Waiting<T> {
    changes: Mutex<Queue<T>>,
    arrived: Notify,
}

struct Queue<T> {
    by_key: HashMap<Arc<str>, Pending<T>>,
    /// Keys by the order in which they came.
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

struct Pending<T> {
    place: u64,
    old: Option<Arc<T>>,
    new: Option<Arc<T>>,
}

impl<T: Cached> Waiting<T> {
    pub(crate) fn new() -> Self {
        let queue = Queue { by_key: HashMap::new(), order: BTreeMap::new(), next: 0 };
        Self { changes: Mutex::new(queue), arrived: Notify::new() }
    }

    /// Called by the store for every change.
    pub(crate) fn tell(&self, delta: Delta<'_, T>) {
        let mut queue = self.changes.lock();
        match delta {
            Delta::Added(new) => queue.note(new.key(), None, Some(new)),
            Delta::Updated { old, new } => queue.note(new.key(), Some(old), Some(new)),
            Delta::Deleted(last) => queue.note(last.key(), Some(last), None),
            Delta::ListStarts | Delta::ListEnds => return,
        }
        drop(queue);
        self.arrived.notify_one();
    }

    fn take(&self) -> Option<Change<T>> {
        let mut queue = self.changes.lock();
        let (_, key) = queue.order.pop_first()?;
        let Pending { old, new, .. } = queue.by_key.remove(&key)?;
        Some(Change { key, old, new })
    }
}

impl<T> Queue<T> {
    fn note(&mut self, key: &Arc<str>, old: Option<&Arc<T>>, new: Option<&Arc<T>>) {
        if let Some(pending) = self.by_key.get_mut(key) {
            pending.new = new.cloned();
            // Came and went unseen.
            if pending.old.is_none() && pending.new.is_none() {
                self.order.remove(&pending.place);
                self.by_key.remove(key);
            }
            return;
        }
        let (old, new, place) = (old.cloned(), new.cloned(), self.next);
        self.next += 1;
        self.order.insert(place, Arc::clone(key));
        self.by_key.insert(Arc::clone(key), Pending { place, old, new });
    }
}

#[cfg(test)]
mod tests;
