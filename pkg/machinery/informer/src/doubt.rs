//! [`Doubt`]: is this watch that of a server whose history went back? Such a server keeps a watch
//! from a version that it has not reached open, and silent, for ever
//! (rule:history-that-goes-back).

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::decode;
use crate::fault::Fault;
use crate::request::Collection;
use crate::shared::Shared;
use crate::stream;

/// Bookmarks come about once a minute.
const SILENT: Duration = Duration::from_secs(120);

/// Asks the server for its newest version when there is a reason to: one request, while the watch
/// goes on.
pub(crate) struct Doubt<'a> {
    shared: &'a Shared,
    collection: Collection,
    ask_at: Instant,
    asking: Option<Asking<'a>>,
}

type Asking<'a> = Pin<Box<dyn Future<Output = Result<u64, Fault>> + Send + 'a>>;

impl<'a> Doubt<'a> {
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

    /// Returns when the server is behind what we know. May be dropped and called again.
    pub(crate) async fn confirmed(&mut self) -> Fault {
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
                Ok(listed) if listed < known => return Fault::Past { listed, known },
                Ok(_) => {}
                Err(fault) => {
                    let resource = &*self.shared.resource;
                    debug!(logger = "informer", resource, %fault, "Cannot read the newest version");
                }
            }
        }
    }
}

async fn newest_version(shared: &Shared, collection: Collection) -> Result<u64, Fault> {
    let (encoding, body) = stream::fetch(shared.client(), collection.newest_version()?).await?;
    decode::list_version(encoding, &body)
}
