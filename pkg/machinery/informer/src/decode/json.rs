//! JSON. Lines go straight into the slim type: `type` precedes `object` in what the API server
//! writes, so serde picks the variant first and never buffers the object.

use std::borrow::Cow;

use model::{Cached, resource_version};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use super::{Bookmark, Event, Page, Status};
use crate::fault::Fault;

#[derive(Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
enum WireEvent<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    Bookmark(WireBookmark),
    Error(WireStatus),
}

impl<T> From<WireEvent<T>> for Event<T> {
    fn from(wire: WireEvent<T>) -> Self {
        match wire {
            WireEvent::Added(object) => Self::Added(object),
            WireEvent::Modified(object) => Self::Modified(object),
            WireEvent::Deleted(object) => Self::Deleted(object),
            WireEvent::Bookmark(mark) => Self::Bookmark(mark.into()),
            WireEvent::Error(status) => Self::Error(status.into()),
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireStatus {
    code: u16,
    #[serde(deserialize_with = "null_as_empty")]
    reason: String,
    #[serde(deserialize_with = "null_as_empty")]
    message: String,
}

impl From<WireStatus> for Status {
    fn from(WireStatus { code, reason, message }: WireStatus) -> Self {
        Self { code, reason, message }
    }
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct WirePage<T> {
    metadata: PageMeta,
    #[serde(deserialize_with = "null_as_empty")]
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl<T> From<WirePage<T>> for Page<T> {
    fn from(WirePage { metadata, items }: WirePage<T>) -> Self {
        let next = metadata.next.filter(|token| !token.is_empty());
        Self { version: metadata.resource_version, next, items }
    }
}

fn null_as_empty<'de, D, V>(from: D) -> Result<V, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads one line of a watch, without its newline.
pub(super) fn event<T: Cached>(line: &[u8]) -> Result<Event<T>, Fault> {
    let read: Result<WireEvent<T>, _> = read(line);
    read.map(Event::from)
        .map_err(|cause| Fault::Undecodable { object: object_of(line), cause: Box::new(cause) })
}

/// Reads one page of a list.
pub(super) fn page<T: Cached>(body: &[u8]) -> Result<Page<T>, Fault> {
    let read: Result<WirePage<T>, _> = read(body);
    read.map(Page::from).map_err(|cause| Fault::Undecodable {
        object: "a page of the list".into(),
        cause: Box::new(cause),
    })
}

pub(super) fn status(body: &[u8]) -> Option<Status> {
    read::<WireStatus>(body).ok().map(Status::from)
}

fn read<V: DeserializeOwned>(json: &[u8]) -> Result<V, serde_json::Error> {
    serde_json::from_slice(json)
}

/// Whose line it is that cannot be read, as far as that can be read.
fn object_of(line: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        object: Object<'a>,
    }
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Meta<'a>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, default)]
        namespace: Option<Cow<'a, str>>,
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    match serde_json::from_slice::<Line<'_>>(line) {
        Ok(Line { object: Object { metadata: Meta { namespace: Some(namespace), name } } }) => {
            format!("object \"{namespace}/{name}\"")
        }
        Ok(line) => format!("object {:?}", line.object.metadata.name),
        Err(_) => format!("a line of {} bytes", line.len()),
    }
}

#[cfg(test)]
mod tests;
