//! A list, streamed where the server can do that and in pages where it cannot.
//!
//! Streamed, the objects come one by one and cost no more memory than the store will hold (5 MiB
//! against 16 to 22 for 5,000 Nodes), and the stream goes on as the watch. A server whose etcd is
//! too old refuses, by a status or by an ERROR event.

use std::time::Duration;

use bytes::Bytes;
use kube::Client;
use tracing::{debug, info};

use crate::fault::Fault;
use crate::intake::{Intake, MessageHead, Staging};
use crate::request::{Collection, Encoding};
use crate::source::FirstList;
use crate::stream::{self, LONGEST_MESSAGE, LONGEST_PAGE, Stream};

/// Longest silence inside a streamed list. The server has all of it in memory, and pages follow.
const PATIENCE: Duration = Duration::from_secs(15);
/// Objects per page; what every client of the API asks for.
const PAGE: usize = 500;

/// A complete list.
pub(crate) struct Listed<'a> {
    pub(crate) staged: Box<dyn Staging + 'a>,
    /// State of the whole collection that the list shows.
    pub(crate) version: u64,
    /// Where the watch goes on, if the list was streamed.
    pub(crate) stream: Option<Stream>,
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
    /// Objects per page: half as many after a page that was too long, twice as many after a short one.
    limit: usize,
}

impl Lister {
    pub(crate) fn new() -> Self {
        Self { refused: false, limit: PAGE }
    }

    pub(crate) async fn list<'a>(
        &mut self,
        cache: &'a dyn Intake,
        collection: &Collection,
        terms: Terms,
    ) -> Result<Listed<'a>, Fault> {
        if !self.refused {
            match streamed(cache, collection, terms).await {
                Ok(listed) => return Ok(listed),
                Err(fault) => self.turn_to_pages(&cache.shared().resource, fault)?,
            }
        }
        self.paged(cache, collection, terms).await
    }

    /// Ok when the list is made in pages at once.
    fn turn_to_pages(&mut self, resource: &str, fault: Fault) -> Result<(), Fault> {
        match &fault {
            Fault::Status { code: 400 | 405 | 406 | 415 | 422, .. } => {
                self.refused = true;
                info!(logger = "informer", resource, %fault,
                    "API server has no streaming lists, using pages");
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

    async fn paged<'a>(
        &mut self,
        cache: &'a dyn Intake,
        collection: &Collection,
        terms: Terms,
    ) -> Result<Listed<'a>, Fault> {
        let client = cache.shared().client();
        let mut staged = cache.stage(terms.reuse);
        let (mut version, mut token) = (None, None::<String>);
        loop {
            let page = match self.page(client, collection, token.as_deref(), terms.truth).await {
                Ok((encoding, body)) => staged.take_page(encoding, &body)?,
                Err(Fault::PageTooLong(_)) => {
                    let request = collection.metadata_of_one(token.as_deref())?;
                    let (encoding, body) = stream::fetch(client, request, LONGEST_PAGE).await?;
                    staged.skip_too_long(encoding, &body)?
                }
                Err(fault) => return Err(fault),
            };
            // All pages show the state of the first one, and name it.
            let version = *version.get_or_insert(page.version);
            token = page.next;
            if token.is_none() {
                return Ok(Listed { staged, version, stream: None });
            }
        }
    }

    /// One page, of half as many objects while it is too long. [`Fault::PageTooLong`] means that the
    /// next object alone is too long.
    async fn page(
        &mut self,
        client: &Client,
        collection: &Collection,
        token: Option<&str>,
        mut truth: FirstList,
    ) -> Result<(Encoding, Bytes), Fault> {
        loop {
            let longest = if self.limit > 1 { LONGEST_PAGE } else { LONGEST_MESSAGE };
            let request = collection.page(self.limit, token, truth)?;
            match stream::fetch(client, request, longest).await {
                // A server that lists from its cache sends all objects, whatever the limit.
                Err(Fault::PageTooLong(_)) if truth == FirstList::Cached => {
                    truth = FirstList::Consistent;
                }
                Err(Fault::PageTooLong(_)) if self.limit > 1 => self.limit = self.limit.div_ceil(2),
                Ok((encoding, body)) => {
                    if body.len() < LONGEST_PAGE / 4 {
                        self.limit = PAGE.min(2 * self.limit);
                    }
                    return Ok((encoding, body));
                }
                Err(fault) => return Err(fault),
            }
        }
    }
}

async fn streamed<'a>(
    cache: &'a dyn Intake,
    collection: &Collection,
    terms: Terms,
) -> Result<Listed<'a>, Fault> {
    let shared = cache.shared();
    shared.metrics.watches.inc();
    let request = collection.streamed_list(terms.lifetime, terms.truth)?;
    let mut stream = Stream::open(shared.client(), request, terms.lifetime).await?;
    let mut staged = cache.stage(terms.reuse);
    loop {
        match stream.next(PATIENCE, |encoding, message| staged.take(encoding, message)).await? {
            Some(MessageHead::Bookmark(mark)) if mark.ends_list => {
                return Ok(Listed { staged, version: mark.version, stream: Some(stream) });
            }
            Some(MessageHead::Version(_) | MessageHead::Bookmark(_)) => {}
            Some(MessageHead::Error(status)) => {
                return Err(stream::refusal(status, Duration::ZERO));
            }
            None => return Err(Fault::Incomplete),
        }
    }
}
