//! A list, streamed where the server can do that and in pages where it cannot.
//!
//! Streamed, the objects come one by one and cost no more memory than the store will hold (5 MiB
//! against 16 to 22 for 5,000 Nodes), and the stream goes on as the watch. A server whose etcd is
//! too old refuses, by a status or by an ERROR event.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use model::Cached;
use tracing::{debug, info};

use crate::decode;
use crate::fault::Fault;
use crate::message::{Event, Page};
use crate::objects::Objects;
use crate::request::Collection;
use crate::shared::Shared;
use crate::source::FirstList;
use crate::staged::Staged;
use crate::stream::{self, Stream};

/// Longest silence inside a streamed list. The server has all of it in memory, and pages follow.
const PATIENCE: Duration = Duration::from_secs(15);
/// Objects per page; what every client of the API asks for.
const PAGE: usize = 500;

/// A complete list.
pub(crate) struct Listed<T> {
    pub(crate) objects: Objects<T>,
    /// Keys of the objects that are there and cannot be read.
    pub(crate) unreadable: HashSet<Arc<str>>,
    /// State of the whole collection that the list shows.
    pub(crate) version: u64,
    /// Where the watch goes on, if the list was streamed.
    pub(crate) stream: Option<Stream<T>>,
}

/// How a list is made.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// See [`FirstList`].
    pub(crate) truth: FirstList,
    /// Copies in the store may be used again.
    pub(crate) reuse: bool,
    /// How long the watch that follows is asked to last.
    pub(crate) lifetime: Duration,
}

/// Knows how this server wants to be listed.
pub(crate) struct Lister {
    /// The server does not know streamed lists. Remembered: it will not learn before it is
    /// replaced, and a list in pages is as good.
    refused: bool,
    /// Objects per page; fewer after a page that was too long.
    limit: usize,
}

impl Lister {
    pub(crate) fn new() -> Self {
        Self { refused: false, limit: PAGE }
    }

    pub(crate) async fn list<T: Cached>(
        &mut self,
        shared: &Shared<T>,
        collection: &Collection,
        terms: Terms,
    ) -> Result<Listed<T>, Fault> {
        if !self.refused {
            match streamed(shared, collection, terms).await {
                Ok(listed) => return Ok(listed),
                Err(fault) => self.turn_to_pages(&shared.resource, fault)?,
            }
        }
        self.paged(shared, collection, terms).await
    }

    /// Ok when the list is to be made in pages at once (rule:pages-follow-a-broken-stream).
    fn turn_to_pages(&mut self, resource: &str, fault: Fault) -> Result<(), Fault> {
        match &fault {
            Fault::Status { code: 400 | 405 | 406 | 415 | 422, .. } => {
                self.refused = true;
                info!(logger = "informer", resource, %fault,
                    "Server has no streaming lists, using pages");
                Ok(())
            }
            // Pages would be answered alike.
            Fault::Status { code: 401 | 403 | 404 | 429, .. } | Fault::Undecodable { .. } => {
                Err(fault)
            }
            _ => {
                debug!(logger = "informer", resource, %fault, "Streamed list failed, using pages");
                Ok(())
            }
        }
    }

    async fn paged<T: Cached>(
        &mut self,
        shared: &Shared<T>,
        collection: &Collection,
        terms: Terms,
    ) -> Result<Listed<T>, Fault> {
        let mut staged = Staged::new(shared, terms.reuse);
        let (mut version, mut token) = (None, None::<String>);
        loop {
            let page = self.page(shared, collection, token.as_deref(), terms.truth).await?;
            // All pages show the state of the first one, and name it.
            let version = *version.get_or_insert(page.version);
            token = page.next;
            page.unreadable.iter().for_each(|object| staged.keep(object));
            page.items.into_iter().for_each(|object| staged.insert(object));
            if token.is_none() {
                let (objects, unreadable) = staged.into_parts();
                return Ok(Listed { objects, unreadable, version, stream: None });
            }
        }
    }

    /// One page; in smaller parts when it is too long for us.
    async fn page<T: Cached>(
        &mut self,
        shared: &Shared<T>,
        collection: &Collection,
        token: Option<&str>,
        truth: FirstList,
    ) -> Result<Page<T>, Fault> {
        loop {
            let request = collection.page(self.limit, token, truth)?;
            match stream::fetch(shared.client(), request).await {
                Ok((encoding, body)) => return decode::page::<T>(encoding, &body),
                Err(Fault::PageTooLong(_)) if self.limit > 1 => self.limit = self.limit.div_ceil(8),
                Err(fault) => return Err(fault),
            }
        }
    }
}

async fn streamed<T: Cached>(
    shared: &Shared<T>,
    collection: &Collection,
    terms: Terms,
) -> Result<Listed<T>, Fault> {
    shared.metrics.watches.inc();
    let request = collection.streamed_list(terms.lifetime, terms.truth)?;
    let mut stream = Stream::<T>::open(shared.client(), request, terms.lifetime).await?;
    let mut staged = Staged::new(shared, terms.reuse);
    loop {
        match stream.next(PATIENCE).await? {
            Some(Event::Added(object) | Event::Modified(object)) => staged.insert(object),
            Some(Event::Deleted(object)) => staged.remove(object.key()),
            Some(Event::Unreadable(object)) => staged.keep(&object),
            Some(Event::UnreadableDeleted(object)) => staged.remove(&object.key),
            Some(Event::Bookmark(mark)) if mark.ends_list => {
                let (objects, unreadable) = staged.into_parts();
                let version = mark.version;
                return Ok(Listed { objects, unreadable, version, stream: Some(stream) });
            }
            Some(Event::Bookmark(_)) => {}
            Some(Event::Error(status)) => return Err(stream::refusal(status, Duration::ZERO)),
            None => return Err(Fault::Incomplete),
        }
    }
}
