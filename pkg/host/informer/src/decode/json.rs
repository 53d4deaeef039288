//! Reads JSON. Lines go straight into the slim type: `type` precedes `object` in what the API server
//! writes, so serde picks the variant first and never buffers the object.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use kube_api::go::null_is_default;
use kube_api::{Cached, Decoding, Status, object_key, resource_version};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::intake::{Bookmark, Event, Page};
use crate::request::Encoding;
use crate::shared::Unreadable;

#[derive(Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
enum WireEvent<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    Bookmark(WireBookmark),
    Error(Status),
}

impl<T> From<WireEvent<T>> for Event<T> {
    fn from(wire: WireEvent<T>) -> Self {
        match wire {
            WireEvent::Added(object) => Self::Added(object),
            WireEvent::Modified(object) => Self::Modified(object),
            WireEvent::Deleted(object) => Self::Deleted(object),
            WireEvent::Bookmark(mark) => Self::Bookmark(mark.into()),
            WireEvent::Error(status) => Self::Error(status),
        }
    }
}

#[derive(Deserialize)]
struct WireBookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default)]
    annotations: Option<BookmarkAnnotations>,
}

#[derive(Deserialize)]
struct BookmarkAnnotations {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<String>,
}

impl From<WireBookmark> for Bookmark {
    fn from(WireBookmark { metadata }: WireBookmark) -> Self {
        let annotations = metadata.annotations.as_ref();
        let end = annotations.and_then(|a| a.initial_events_end.as_deref());
        Self { version: metadata.resource_version, ends_list: end == Some("true") }
    }
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct WirePage<T> {
    metadata: PageMeta,
    #[serde(deserialize_with = "null_is_default")]
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default, rename = "continue")]
    next: Option<String>,
    #[serde(default)]
    remaining_item_count: Option<u64>,
}

impl<T> From<WirePage<T>> for Page<T> {
    fn from(WirePage { metadata, items }: WirePage<T>) -> Self {
        let next = metadata.next.filter(|token| !token.is_empty());
        let remaining = metadata.remaining_item_count;
        let (version, unreadable) = (metadata.resource_version, Vec::new());
        Self { version, next, remaining, items, unreadable }
    }
}

/// Reads one line of a watch, without its newline.
pub(super) fn event<T: Cached>(line: &[u8]) -> Result<Event<T>, Fault> {
    let read: Result<WireEvent<T>, _> = read(line);
    read.map(Event::from).or_else(|cause| unreadable_event::<T>(line, cause))
}

/// The event of a line whose object cannot be read.
fn unreadable_event<T: Cached>(line: &[u8], cause: serde_json::Error) -> Result<Event<T>, Fault> {
    let (kind, identity) = of_line(line);
    let Some(identity) = identity else {
        return Err(undecodable(format!("a line of {} bytes", line.len()), cause));
    };
    match (T::DECODING, kind.as_str()) {
        (Decoding::Tolerant, "ADDED" | "MODIFIED") => {
            Ok(Event::Unreadable(identity.unreadable(cause)))
        }
        (Decoding::Tolerant, "DELETED") => Ok(Event::UnreadableDeleted(identity.unreadable(cause))),
        _ => Err(undecodable(identity.to_string(), cause)),
    }
}

/// Reads one page of a list.
pub(super) fn page<T: Cached>(body: &[u8]) -> Result<Page<T>, Fault> {
    let read: Result<WirePage<T>, _> = read(body);
    read.map(Page::from).or_else(|cause| page_one_by_one(body, cause))
}

/// Reads the objects of a page apart, to find those that cannot be read.
fn page_one_by_one<T: Cached>(body: &[u8], cause: serde_json::Error) -> Result<Page<T>, Fault> {
    let Ok(raw) = read::<WirePage<Box<RawValue>>>(body) else {
        return Err(undecodable("a page of the list".to_owned(), cause));
    };
    let Page { version, next, remaining, items: raw, .. } = raw.into();
    let (mut items, mut unreadable) = (Vec::with_capacity(raw.len()), Vec::new());
    for object in &raw {
        let text = object.get().as_bytes();
        match read(text) {
            Ok(item) => items.push(item),
            Err(cause) => unreadable.push(unreadable_item::<T>(text, cause)?),
        }
    }
    Ok(Page { version, next, remaining, items, unreadable })
}

fn unreadable_item<T: Cached>(text: &[u8], cause: serde_json::Error) -> Result<Unreadable, Fault> {
    match (T::DECODING, of_object(text)) {
        (Decoding::Tolerant, Some(identity)) => Ok(identity.unreadable(cause)),
        (_, identity) => {
            let object = identity.map(|identity: Identity| identity.to_string());
            let unnamed = || "an object without a name in a page of the list".to_owned();
            Err(undecodable(object.unwrap_or_else(unnamed), cause))
        }
    }
}

pub(super) fn undecodable(object: String, cause: serde_json::Error) -> Fault {
    Fault::Undecodable { object, encoding: Encoding::Json, cause: Box::new(cause) }
}

pub(super) fn list_version(body: &[u8]) -> Result<u64, Fault> {
    let read: Result<WirePage<IgnoredAny>, _> = read(body);
    let list = read.map_err(|cause| undecodable("a list".to_owned(), cause))?;
    Ok(list.metadata.resource_version)
}

pub(super) fn read<V: DeserializeOwned>(json: &[u8]) -> Result<V, serde_json::Error> {
    serde_json::from_slice(json)
}

/// Identity of an object that cannot be read.
struct Identity {
    key: Arc<str>,
    uid: String,
    version: u64,
}

#[derive(Deserialize)]
struct WatchLine {
    #[serde(default, rename = "type")]
    kind: String,
    object: Named,
}

#[derive(Deserialize)]
struct Named {
    metadata: Map<String, Value>,
}

/// The type of a line of a watch and the identity of its object.
fn of_line(line: &[u8]) -> (String, Option<Identity>) {
    match serde_json::from_slice(line) {
        Ok(WatchLine { kind, object }) => (kind, Identity::of(&object)),
        Err(_) => (String::new(), None),
    }
}

/// The identity of an object.
fn of_object(text: &[u8]) -> Option<Identity> {
    Identity::of(&serde_json::from_slice(text).ok()?)
}

impl Identity {
    fn of(Named { metadata }: &Named) -> Option<Self> {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        Some(Self {
            key: object_key(text("namespace"), text("name")?.into()),
            uid: text("uid").unwrap_or_default().to_owned(),
            version: text("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0),
        })
    }

    fn unreadable(self, cause: impl Error + Send + Sync + 'static) -> Unreadable {
        let Self { key, uid, version } = self;
        Unreadable { key, uid, version, cause: Box::new(cause) }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {:?}", self.key)
    }
}

#[cfg(test)]
mod tests;
