//! What comes out of a list or a watch, whatever its encoding.

use kube_api::Status;

use crate::unreadable::Unreadable;

/// One message of a watch.
#[derive(Debug)]
pub(crate) enum Event<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    Bookmark(Bookmark),
    /// An object of a tolerant collection was added or changed and cannot be read.
    Unreadable(Unreadable),
    /// The same of one that was deleted.
    UnreadableDeleted(Unreadable),
    Error(Status),
}

/// What a message says beside the object that it brings.
#[derive(Debug)]
pub(crate) enum Word {
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
    pub(crate) items: Vec<T>,
    /// Objects of a tolerant collection that cannot be read.
    pub(crate) unreadable: Vec<Unreadable>,
}

/// What a page says beside its objects.
pub(crate) struct PageHead {
    pub(crate) version: u64,
    /// Token of the next page, if there is one.
    pub(crate) next: Option<String>,
}
