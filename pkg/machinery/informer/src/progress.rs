//! How far a store has come, for everybody who waits for it.

use tokio::time::Instant;

/// Published after the store and its handlers have taken in what it tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The newest version that any applied list, event or bookmark had.
    pub(crate) version: u64,
    /// Histories of the server so far; versions compare within one of them.
    pub(crate) history: u64,
    /// When the newest applied list was begun.
    pub(crate) listed: Option<Instant>,
    /// The kind is not served, or not for us.
    pub(crate) dormant: bool,
}

impl Progress {
    /// A list that was begun at or after `since` has been applied; any list if that is `None`.
    pub(crate) fn has_list(&self, since: Option<Instant>) -> bool {
        self.listed.is_some_and(|listed| since.is_none_or(|since| listed >= since))
    }
}
