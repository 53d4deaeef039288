//! [`Progress`]: how far an informer has got. [`PublishedProgress`] is the part of its state that handles wait for.

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::source::FirstList;

/// Published after the store and its handlers have taken in what it tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The newest version that any applied list, event or bookmark had.
    pub(crate) version: u64,
    /// Histories of the server so far; versions compare within one of them.
    pub(crate) history: u64,
    /// When the newest applied list was begun.
    pub(crate) listed: Option<Instant>,
    /// When the last consistent list was begun: one from the server's cache may show less than what there
    /// was when it was begun.
    pub(crate) consistent: Option<Instant>,
    /// When a watch was first not opened at the first try, after the last consistent list.
    pub(crate) broken: Option<Instant>,
    /// The kind is not served, or not for us.
    pub(crate) dormant: bool,
}

impl Progress {
    /// A consistent list that was begun at or after `since` has been applied; any list if that is
    /// `None`.
    pub(crate) fn has_list(&self, since: Option<Instant>) -> bool {
        match since {
            None => self.listed.is_some(),
            Some(since) => self.consistent.is_some_and(|begun| begun >= since),
        }
    }

    /// There is a consistent list, and each watch after it was opened at the first try.
    pub(crate) fn is_unbroken(&self) -> bool {
        self.consistent.is_some() && self.broken.is_none()
    }

    /// Notes a list that was begun at that time.
    pub(crate) fn note_list(&mut self, begun: Instant, truth: FirstList) {
        self.listed = Some(begun);
        if truth == FirstList::Consistent {
            self.consistent = Some(begun);
            self.broken = None;
        }
    }
}

/// The progress of an informer, and a way to wait for more of it. Waiters wake in the order in which they began to
/// wait. With tokio's watch channel, which wakes them in a random order, a simulation could not repeat a run.
#[derive(Default)]
pub(crate) struct PublishedProgress {
    progress: Mutex<Progress>,
    changed: Notify,
}

impl PublishedProgress {
    pub(crate) fn now(&self) -> Progress {
        *self.progress.lock()
    }

    /// Changes the progress, and has all waiters look again.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress.lock());
        self.changed.notify_waiters();
    }

    /// Waits until the progress `is_there`, and returns it.
    pub(crate) async fn wait_for(&self, is_there: impl Fn(&Progress) -> bool) -> Progress {
        loop {
            // Wakes also for a change between the look and the wait.
            let changed = self.changed.notified();
            let progress = self.now();
            if is_there(&progress) {
                return progress;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream::FuturesUnordered;
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    #[tokio::test]
    async fn waiters_wake_in_the_order_in_which_they_began_to_wait() {
        let published = PublishedProgress::default();
        let wait = async |waiter| {
            published.wait_for(|progress| progress.version == 1).await;
            waiter
        };
        // Polls those that were woken, in that order.
        let mut waiters = FuturesUnordered::new();
        for waiter in 0..64 {
            waiters.push(wait(waiter));
            assert!(waiters.next().now_or_never().is_none(), "it waits");
        }
        published.change(|progress| progress.version = 1);
        assert_eq!(waiters.collect::<Vec<_>>().await, (0..64).collect::<Vec<_>>());
    }
}
