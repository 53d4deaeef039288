//! A consistent list, streamed where the server can do that and in pages where it cannot.
//!
//! Streamed, the objects come one by one and cost no more memory than the store will hold
//! (`rust-guide.md` 2: 5 MiB against 16 to 22 for 5,000 Nodes), and the stream goes on as the
//! watch. A server whose etcd is too old refuses, by a status or by an ERROR event.

use std::time::Duration;

use model::Cached;
use tracing::{debug, info};

use crate::decode::{self, Event};
use crate::fault::Fault;
use crate::informer::Shared;
use crate::request;
use crate::staged::{Objects, Staged};
use crate::stream::{self, Stream};

/// Longest silence inside a list. The server has all of it in memory.
const PATIENCE: Duration = Duration::from_secs(60);
/// After so many streamed lists in a row that broke off, one is tried in pages: something on the
/// way may hold streams back.
const BROKEN_OFF: u32 = 3;

/// A complete list.
pub(crate) struct Listed<T> {
    pub(crate) objects: Objects<T>,
    /// State of the whole collection that the list shows.
    pub(crate) version: u64,
    /// Where the watch goes on, if the list was streamed.
    pub(crate) stream: Option<Stream<T>>,
}

/// Knows how this server wants to be listed.
#[derive(Default)]
pub(crate) struct Lister {
    /// The server does not know streamed lists. Remembered: it will not learn before it is
    /// replaced, and a list in pages is as good.
    refused: bool,
    broken_off: u32,
}

impl Lister {
    pub(crate) async fn list<T: Cached>(
        &mut self,
        shared: &Shared<T>,
        lifetime: Duration,
    ) -> Result<Listed<T>, Fault> {
        if !self.refused {
            match streamed(shared, lifetime).await {
                Ok(listed) => {
                    self.broken_off = 0;
                    return Ok(listed);
                }
                Err(fault) => self.turn_to_pages::<T>(fault)?,
            }
        }
        paged(shared).await
    }

    /// Ok when the list should be tried in pages at once.
    fn turn_to_pages<T: Cached>(&mut self, fault: Fault) -> Result<(), Fault> {
        let resource = T::RESOURCE;
        match &fault {
            Fault::Status { code: 400 | 405 | 406 | 415 | 422, .. } => self.refused = true,
            // How an API server on an old etcd refuses (and how it may fail once for any reason,
            // so this is asked again at the next list; that costs one request).
            Fault::Status { code: 500, .. } => {}
            Fault::Status { code: 501.., .. } | Fault::Silent(_) | Fault::Incomplete => {
                self.broken_off += 1;
                if !self.broken_off.is_multiple_of(BROKEN_OFF) {
                    return Err(fault);
                }
            }
            _ => return Err(fault),
        }
        if self.refused {
            info!(logger = "informer", resource, %fault, "Server has no streaming lists, using pages");
        } else {
            debug!(logger = "informer", resource, %fault, "Streamed list failed, using pages once");
        }
        Ok(())
    }
}

async fn streamed<T: Cached>(shared: &Shared<T>, lifetime: Duration) -> Result<Listed<T>, Fault> {
    shared.metrics.watches.inc();
    let request = request::streamed_list::<T>(lifetime)?;
    let mut stream = Stream::<T>::open(&shared.client, request, lifetime).await?;
    let mut staged = Staged::new(&shared.store);
    loop {
        match stream.next(PATIENCE).await? {
            Some(Event::Added(object) | Event::Modified(object)) => staged.insert(object),
            Some(Event::Deleted(object)) => staged.remove(&object),
            Some(Event::Bookmark(mark)) if mark.ends_list => {
                let (objects, version) = (staged.into_objects(), mark.version);
                return Ok(Listed { objects, version, stream: Some(stream) });
            }
            Some(Event::Bookmark(_)) => {}
            Some(Event::Error(status)) => return Err(stream::refusal(status, Duration::ZERO)),
            None => return Err(Fault::Incomplete),
        }
    }
}

async fn paged<T: Cached>(shared: &Shared<T>) -> Result<Listed<T>, Fault> {
    let mut staged = Staged::new(&shared.store);
    let (mut version, mut token) = (None, None::<String>);
    loop {
        let request = request::page::<T>(token.as_deref())?;
        let (encoding, body) = stream::fetch(&shared.client, request).await?;
        let page = decode::page::<T>(encoding, &body)?;
        // All pages show the state of the first one, and name it.
        let version = *version.get_or_insert(page.version);
        token = page.next;
        page.items.into_iter().for_each(|object| staged.insert(object));
        if token.is_none() {
            return Ok(Listed { objects: staged.into_objects(), version, stream: None });
        }
    }
}
