//! Messages that the loop of an informer reads, and [`Intake`], the cache as the loop sees it whatever the type
//! of its objects. So the loop, with all that it does about failures, is compiled once and not once
//! for each type.

use std::sync::Arc;

use kube_api::{Cached, Status};
use tokio::time::Instant;

use crate::fault::Fault;
use crate::request::{Accept, Encoding, Format};
use crate::shared::Shared;
use crate::shared::Unreadable;
use crate::source::FirstList;

pub(crate) trait Intake: Send + Sync {
    /// State that does not depend on the type of the objects.
    fn shared(&self) -> &Shared;

    /// Values of the header `Accept`.
    fn accept(&self, format: Format) -> Accept;

    /// Number of objects.
    fn len(&self) -> usize;

    /// Sum of [`crate::comparison::digest`] over all objects.
    fn digest(&self) -> u64;

    /// Takes in a message of a watch.
    fn take(&self, encoding: Encoding, message: &[u8]) -> Result<MessageHead, Fault>;

    /// Begins a list. Copies that are here may be used again if `reuse`.
    fn stage(&self, reuse: bool) -> Box<dyn Staging + '_>;

    /// Drops the objects and delivers their deletions.
    fn clear(&self);

    /// Drops the objects, which are not ours any more, without delivering deletions.
    fn abandon(&self, cause: &str);
}

/// A list under way, kept apart from the cache until it is complete.
pub(crate) trait Staging: Send {
    /// Takes in a message of a streamed list.
    fn take(&mut self, encoding: Encoding, message: &[u8]) -> Result<MessageHead, Fault>;

    /// Takes in a page.
    fn take_page(&mut self, encoding: Encoding, body: &[u8]) -> Result<PageHead, Fault>;

    /// Takes in a page of the metadata of an object that is too long to be read.
    fn skip_too_long(&mut self, encoding: Encoding, body: &[u8]) -> Result<PageHead, Fault>;

    /// The key of an object that the complete list shows at a version up to `known`, and that the
    /// store, which has followed everything up to there, does not have in that version.
    fn contradiction(&self, known: u64) -> Option<Arc<str>>;

    /// The list is complete, and the state of everything.
    fn apply(self: Box<Self>, version: u64, begun: Instant, truth: FirstList);

    /// The list is complete, and of another history (rule:history-that-goes-back).
    fn restart(self: Box<Self>, version: u64, begun: Instant);
}

/// One message of a watch.
#[derive(Debug)]
pub(crate) enum Event<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    Bookmark(Bookmark),
    /// An object of a tolerant collection was added or changed and cannot be read.
    Unreadable(Unreadable),
    /// An object of a tolerant collection was deleted and cannot be read.
    UnreadableDeleted(Unreadable),
    Error(Status),
}

impl<T: Cached> Event<T> {
    /// Version of the object; `None` for a bookmark and for an error.
    pub(crate) fn version(&self) -> Option<u64> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                Some(object.resource_version())
            }
            Self::Unreadable(object) | Self::UnreadableDeleted(object) => Some(object.version),
            Self::Bookmark(_) | Self::Error(_) => None,
        }
    }
}

/// The part of a message that does not depend on the type of its object.
#[derive(Debug)]
pub(crate) enum MessageHead {
    /// The version of that object.
    Version(u64),
    Bookmark(Bookmark),
    Error(Status),
}

/// How far the server has got; sent about once a minute, and at the end of a streamed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bookmark {
    pub(crate) version: u64,
    /// The streamed list is complete.
    pub(crate) ends_list: bool,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) version: u64,
    /// Token of the next page, if there is one.
    pub(crate) next: Option<String>,
    /// Number of objects on later pages, if the server says so: not with selectors.
    pub(crate) remaining: Option<u64>,
    pub(crate) items: Vec<T>,
    /// Objects of a tolerant collection that cannot be read.
    pub(crate) unreadable: Vec<Unreadable>,
}

/// The part of a page that does not depend on the type of its objects.
pub(crate) struct PageHead {
    pub(crate) version: u64,
    /// Token of the next page, if there is one.
    pub(crate) next: Option<String>,
}
