//! How far a store has come, for everybody who waits for it.

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
    /// The same of the consistent lists: one from the server's cache may show less than what there
    /// was when it was begun.
    pub(crate) consistent: Option<Instant>,
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

    /// Notes a list that was begun at that time.
    pub(crate) fn note_list(&mut self, begun: Instant, truth: FirstList) {
        self.listed = Some(begun);
        if truth == FirstList::Consistent {
            self.consistent = Some(begun);
        }
    }
}
