//! [`OpenWrites`]: until when the server may still carry out a write whose outcome is unknown.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// The writes of unknown outcome of one controller; clones are the same. Every
/// [`crate::ObjectClient`] has one, and several can share one.
#[derive(Clone, Debug, Default)]
pub struct OpenWrites {
    /// When the server has given up the last of them.
    until: Arc<Mutex<Option<Instant>>>,
}

impl OpenWrites {
    pub(crate) fn note(&self, settled_at: Instant) {
        let mut until = self.until.lock();
        *until = (*until).max(Some(settled_at));
    }

    /// Waits until the server no longer carries out any of them, which is at most the time limit of
    /// one attempt: for a controller that stops, before its lease is given back.
    pub async fn settled(&self) {
        while let Some(until) = self.open_until() {
            sleep_until(until).await;
        }
    }

    fn open_until(&self) -> Option<Instant> {
        self.until.lock().filter(|until| *until > Instant::now())
    }
}
