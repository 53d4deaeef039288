//! [`Turns`]: which lookups are under way. The system's resolver holds a thread for each, and a
//! name whose name server is dead holds it for 20 s and longer
//! (`rule:slow-names-hold-up-nobody-else`).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Lookups under way that are not known to be slow.
pub(super) const QUICK: usize = 64;
/// Lookups under way that are.
pub(super) const SLOW: usize = 192;
/// A lookup that takes this long is slow.
pub(super) const SLOW_AFTER: Duration = Duration::from_millis(250);
/// Lookups under way of one asker.
pub(super) const OF_AN_ASKER: usize = 2;

/// Who asks for addresses, such as one member cluster: it has two lookups under way at most, however
/// many hosts it names.
#[derive(Clone, Debug)]
pub struct Asker(Arc<Semaphore>);

impl Default for Asker {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(OF_AN_ASKER)))
    }
}

impl Asker {
    /// `None` only when the semaphore is closed, which nobody does.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}

/// The turns of lookups, slow names apart from all others.
#[derive(Debug)]
pub(super) struct Turns {
    quick: Semaphore,
    slow: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self { quick: Semaphore::new(QUICK), slow: Semaphore::new(SLOW) }
    }
}

impl Turns {
    /// Carries out `lookup` of a name that was slow the last time or not, when it has its turn; what
    /// it found, and whether it was slow. A lookup that turns out to be slow leaves its turn to
    /// others as soon as there is one among the slow ones.
    pub(super) async fn run<T>(
        &self,
        was_slow: bool,
        lookup: impl Future<Output = T>,
    ) -> (T, bool) {
        let mut lookup = pin!(lookup);
        if was_slow {
            let _turn = self.slow.acquire().await;
            let begun = Instant::now();
            return (lookup.await, begun.elapsed() >= SLOW_AFTER);
        }
        let quick = self.quick.acquire().await;
        if let Ok(found) = timeout(SLOW_AFTER, &mut lookup).await {
            return (found, false);
        }
        let found = tokio::select! {
            found = &mut lookup => found,
            _slow = self.slow.acquire() => {
                drop(quick);
                lookup.await
            }
        };
        (found, true)
    }
}
