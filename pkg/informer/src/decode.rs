//! The encoding of lists and watches: JSON (`README.md` decision 6). Another encoding replaces
//! this file and [`crate::lines`], nothing else.
//!
//! Lines go straight into the slim type. `type` precedes `object` in what the API server writes,
//! so serde picks the variant first and never buffers the object.

use std::borrow::Cow;

use model::{Cached, resource_version};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use crate::fault::Fault;

/// Value of the `Accept` header.
pub(crate) const MEDIA_TYPE: &str = "application/json";

/// One line of a watch.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
pub(crate) enum Event<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    Bookmark(Bookmark),
    Error(Status),
}

/// How far the server has got; sent about once a minute, and at the end of a streamed list.
#[derive(Debug, Deserialize)]
pub(crate) struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default)]
    annotations: Option<BookmarkAnnotations>,
}

#[derive(Debug, Deserialize)]
struct BookmarkAnnotations {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<String>,
}

impl Bookmark {
    pub(crate) fn version(&self) -> u64 {
        self.metadata.resource_version
    }

    /// The streamed list is complete.
    pub(crate) fn ends_list(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.and_then(|a| a.initial_events_end.as_deref()) == Some("true")
    }
}

/// The API server's own words about a failure.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) code: u16,
    #[serde(deserialize_with = "null_as_empty")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "null_as_empty")]
    pub(crate) message: String,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub(crate) struct Page<T> {
    metadata: PageMeta,
    #[serde(deserialize_with = "null_as_empty")]
    pub(crate) items: Vec<T>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl<T> Page<T> {
    pub(crate) fn version(&self) -> u64 {
        self.metadata.resource_version
    }

    /// Token of the next page, if there is one.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.metadata.next.take().filter(|token| !token.is_empty())
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
pub(crate) fn event<T: Cached>(line: &[u8]) -> Result<Event<T>, Fault> {
    read(line).map_err(|cause| Fault::Undecodable { object: object_of(line), cause })
}

/// Reads one page of a list.
pub(crate) fn page<T: Cached>(body: &[u8]) -> Result<Page<T>, Fault> {
    read(body).map_err(|cause| Fault::Undecodable { object: "a page of the list".into(), cause })
}

/// Reads the body of a failed request; a proxy on the way may have written anything.
pub(crate) fn status(body: &[u8]) -> Status {
    read(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        Status { message: text.chars().take(200).collect(), ..Status::default() }
    })
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
