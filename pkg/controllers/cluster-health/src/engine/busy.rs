//! [`BusyTasks`]: how many tasks of a cluster may have a probe under way, for whoever gives it up
//! and waits for them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The tasks of one cluster.
#[derive(Default)]
pub(crate) struct BusyTasks(AtomicUsize);

/// A task that may have a probe under way, until this is dropped.
pub(crate) struct Busy<'a>(&'a AtomicUsize);

impl BusyTasks {
    /// One more.
    pub(crate) fn begin(&self) -> Busy<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Busy(&self.0)
    }

    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
