//! [`Doubt`]: whether the server's history may be another one than the cache has followed
//! (rule:history-that-goes-back). The only judge of that; controllers read its verdict through
//! [`crate::Informer::is_doubted`].

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::decode;
use crate::fault::Fault;
use crate::request::Collection;
use crate::shared::Shared;
use crate::stream;

/// No API server starts, and no etcd is restored, in less time.
pub(crate) const RESTART: Duration = Duration::from_secs(2);
/// A connection that breaks in a quiet time and is opened again at the first try calls for a list
/// no more often than this: a proxy that cuts idle connections must not cause a list each time.
const LISTS_APART: Duration = Duration::from_secs(300);
/// Bookmarks come about once a minute.
const SILENT: Duration = Duration::from_secs(120);
/// Pause between questions while sends are held.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What the loop knows about a connection that was lost.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    lost: bool,
    /// A watch could not be opened since.
    opening_failed: bool,
}

impl Doubt {
    /// The connection broke.
    pub(crate) fn lost(&mut self, shared: &Shared) {
        self.lost = true;
        shared.set_doubted(true);
    }

    /// A watch could not be opened.
    pub(crate) fn not_opened(&mut self, shared: &Shared, fault: &Fault) {
        // A server that throttles is up.
        self.opening_failed |= !fault.is_throttled();
        self.lost(shared);
    }

    /// The server has the history that the cache follows.
    pub(crate) fn end(&mut self, shared: &Shared) {
        *self = Self::default();
        shared.set_doubted(false);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether only a consistent list can tell: the server said nothing for so long that it may
    /// have been started again, with an etcd that has lost its last seconds. A watch from the
    /// version that is known, and the server's newest version, show nothing of that once the new
    /// history has passed the known version.
    pub(crate) fn calls_for_list(&self, silent: Duration, listed: Option<Instant>) -> bool {
        let is_due = || listed.is_none_or(|at| at.elapsed() >= LISTS_APART);
        self.lost && silent >= RESTART && (self.opening_failed || is_due())
    }
}

/// Asks the server for its newest version when there is a reason to: one request, while the watch
/// goes on. A server whose history is shorter than what is known keeps a watch from there open, and
/// silent, for ever.
pub(crate) struct Question<'a> {
    shared: &'a Shared,
    collection: Collection,
    ask_at: Instant,
    asking: Option<Asking<'a>>,
}

type Asking<'a> = Pin<Box<dyn Future<Output = Result<u64, Fault>> + Send + 'a>>;

impl<'a> Question<'a> {
    /// `at_once`: the connection broke before this watch.
    pub(crate) fn new(shared: &'a Shared, collection: Collection, at_once: bool) -> Self {
        let now = Instant::now();
        let ask_at = if at_once { now } else { now + SILENT };
        Self { shared, collection, ask_at, asking: None }
    }

    /// The watch said something, so its server has passed what we know.
    pub(crate) fn heard(&mut self) {
        self.asking = None;
        self.ask_at = Instant::now() + SILENT;
    }

    /// Returns with an answer: the server has got as far as what is known, or is behind it. May be
    /// dropped and called again.
    pub(crate) async fn answered(&mut self) -> Result<(), Fault> {
        loop {
            sleep_until(self.ask_at).await;
            let (shared, collection) = (self.shared, &self.collection);
            let asking = self
                .asking
                .get_or_insert_with(|| Box::pin(newest_version(shared, collection.clone())));
            let answer = asking.await;
            self.heard();
            let known = self.shared.version();
            match answer {
                Ok(listed) if listed < known => return Err(Fault::Past { listed, known }),
                Ok(_) => return Ok(()),
                Err(fault) => {
                    let resource = &*self.shared.resource;
                    debug!(logger = "informer", resource, %fault, "Cannot read the newest version");
                    if self.shared.is_doubted() {
                        self.ask_at = Instant::now() + ASK_AGAIN;
                    }
                }
            }
        }
    }
}

async fn newest_version(shared: &Shared, collection: Collection) -> Result<u64, Fault> {
    let (encoding, body) = stream::fetch(shared.client(), collection.newest_version()?).await?;
    decode::list_version(encoding, &body)
}
