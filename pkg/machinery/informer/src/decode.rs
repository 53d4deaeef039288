//! The encodings of lists and watches, and what comes out of them whatever the encoding.
//!
//! A type that the API server has protobuf of is asked for in it, unless the settings say JSON;
//! the answer says which it is, so a proxy or an old server that answers in JSON is understood as
//! well.

mod json;
mod protobuf;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use model::{Cached, View};

use crate::fault::Fault;
use crate::unreadable::Unreadable;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
const PROTOBUF_STREAM: &str =
    "application/vnd.kubernetes.protobuf;stream=watch,application/json;q=0.9";

const METADATA_PAGE: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.9";
const METADATA_STREAM: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.9";

/// What an informer asks for (`--kube-api-content-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Protobuf of the types that have it.
    #[default]
    Protobuf,
    /// JSON only.
    Json,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// What an answer says of itself; silence is JSON.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match kind {
            Some(kind) if kind.starts_with("application/vnd.kubernetes.protobuf") => Self::Protobuf,
            _ => Self::Json,
        }
    }
}

/// Values of the `Accept` header for lists and watches of a type.
#[derive(Clone, Copy)]
pub(crate) struct Accept {
    pub(crate) page: &'static str,
    pub(crate) stream: &'static str,
}

impl Accept {
    pub(crate) fn of<T: Cached>(format: Format) -> Self {
        match (T::VIEW, T::FROM_PROTOBUF, format) {
            (View::Metadata, ..) => Self::METADATA,
            (View::Object, Some(_), Format::Protobuf) => {
                Self { page: PROTOBUF, stream: PROTOBUF_STREAM }
            }
            (View::Object, ..) => Self { page: JSON, stream: JSON },
        }
    }

    /// Metadata of objects of any kind.
    pub(crate) const METADATA: Self = Self { page: METADATA_PAGE, stream: METADATA_STREAM };
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
    /// The same of one that was deleted.
    UnreadableDeleted(Unreadable),
    Error(Status),
}

/// How far the server has got; sent about once a minute, and at the end of a streamed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bookmark {
    pub(crate) version: u64,
    /// The streamed list is complete.
    pub(crate) ends_list: bool,
}

/// The API server's own words about a failure.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
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

/// Reads one message of a watch.
pub(crate) fn event<T: Cached>(encoding: Encoding, message: &[u8]) -> Result<Event<T>, Fault> {
    match encoding {
        Encoding::Json => json::event(message),
        Encoding::Protobuf => protobuf::event(message),
    }
}

/// Reads one page of a list.
pub(crate) fn page<T: Cached>(encoding: Encoding, body: &[u8]) -> Result<Page<T>, Fault> {
    match encoding {
        Encoding::Json => json::page(body),
        Encoding::Protobuf => protobuf::page(body),
    }
}

/// Reads the version of a list whose objects do not matter.
pub(crate) fn list_version(encoding: Encoding, body: &[u8]) -> Result<u64, Fault> {
    match encoding {
        Encoding::Json => json::list_version(body),
        Encoding::Protobuf => protobuf::list_version(body),
    }
}

/// Reads the body of a failed request; a proxy on the way may have written anything.
pub(crate) fn status(encoding: Encoding, body: &[u8]) -> Status {
    let read = match encoding {
        Encoding::Json => json::status(body),
        Encoding::Protobuf => protobuf::status(body),
    };
    read.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        Status { message: text.chars().take(200).collect(), ..Status::default() }
    })
}

#[cfg(test)]
mod tests;
