//! Reads messages of a watch, pages of a list and refusals, in either encoding. JSON is in `json`.
//! Protobuf is `k8s.io/apimachinery/pkg/{apis/meta/v1,runtime}/generated.proto` around the objects
//! that [`kube_api`] reads, each in an envelope ([`ENVELOPE`]).

mod json;
pub(crate) mod selection;

use kube_api::protobuf::{ENVELOPE, Fields, Malformed, only, version};
use kube_api::{Cached, Status, object_key};

use crate::fault::Fault;
use crate::intake::{Bookmark, Event, Page};
use crate::request::Encoding;

/// Reads one message of a watch.
pub(crate) fn event<T: Cached>(encoding: Encoding, message: &[u8]) -> Result<Event<T>, Fault> {
    match encoding {
        Encoding::Json => json::event(message),
        Encoding::Protobuf => event_from_protobuf(message),
    }
}

/// Reads one page of a list.
pub(crate) fn page<T: Cached>(encoding: Encoding, body: &[u8]) -> Result<Page<T>, Fault> {
    match encoding {
        Encoding::Json => json::page(body),
        Encoding::Protobuf => page_from_protobuf(body),
    }
}

/// Reads the version of a list whose objects do not matter.
pub(crate) fn list_version(encoding: Encoding, body: &[u8]) -> Result<u64, Fault> {
    match encoding {
        Encoding::Json => json::list_version(body),
        Encoding::Protobuf => list_version_from_protobuf(body),
    }
}

/// Reads the body of a failed request; a proxy on the way may have written anything.
pub(crate) fn status(body: &[u8]) -> Status {
    Status::read(body).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        Status { message: text.chars().take(200).collect(), ..Status::default() }
    })
}

const LIST_END: &str = "k8s.io/initial-events-end";

/// Reads a `WatchEvent`: type is field 1, the `RawExtension` of the object field 2.
fn event_from_protobuf<T: Cached>(message: &[u8]) -> Result<Event<T>, Fault> {
    let outer = |cause| undecodable(format!("a message of {} bytes", message.len()), cause);
    let (kind, object) = parts_of_event(message).map_err(outer)?;
    match kind {
        "ADDED" => item(object).map(Event::Added),
        "MODIFIED" => item(object).map(Event::Modified),
        "DELETED" => item(object).map(Event::Deleted),
        "BOOKMARK" => bookmark(object).map(Event::Bookmark).map_err(outer),
        "ERROR" => Status::from_protobuf(object).map(Event::Error).map_err(outer),
        _ => Err(outer(Malformed("an unknown type of watch event"))),
    }
}

fn parts_of_event(message: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let (mut kind, mut object) = ("", &[][..]);
    for field in Fields::of(message) {
        let field = field?;
        match field.number {
            1 => kind = field.text()?,
            2 => object = only(field.bytes()?, 1)?,
            _ => {}
        }
    }
    Ok((kind, unwrap(object)?))
}

/// Reads a list: `ListMeta` is field 1, the items are field 2.
fn page_from_protobuf<T: Cached>(body: &[u8]) -> Result<Page<T>, Fault> {
    let outer = |cause| undecodable("a page of the list".to_owned(), cause);
    let (mut meta, mut items) = (ListMeta::default(), Vec::new());
    for field in Fields::of(unwrap(body).map_err(outer)?) {
        let field = field.map_err(outer)?;
        let bytes = || field.bytes().map_err(outer);
        match field.number {
            1 => read_list_meta(bytes()?, &mut meta).map_err(outer)?,
            2 => items.push(item(bytes()?)?),
            _ => {}
        }
    }
    let ListMeta { version, next } = meta;
    Ok(Page { version, next, remaining: None, items, unreadable: Vec::new() })
}

fn list_version_from_protobuf(body: &[u8]) -> Result<u64, Fault> {
    let read = || {
        let mut meta = ListMeta::default();
        read_list_meta(only(unwrap(body)?, 1)?, &mut meta)?;
        Ok(meta.version)
    };
    read().map_err(|cause| undecodable("a list".to_owned(), cause))
}

fn undecodable(object: String, cause: Malformed) -> Fault {
    Fault::Undecodable { object, encoding: Encoding::Protobuf, cause: Box::new(cause) }
}

/// Reads one object. One that cannot be read is a fault even in a tolerant collection: it is asked
/// for in JSON then, and there the collection's own rule holds.
fn item<T: Cached>(object: &[u8]) -> Result<T, Fault> {
    let read = T::FROM_PROTOBUF.ok_or(Malformed("no protobuf of this type was asked for"));
    read.and_then(|read| read(object)).map_err(|cause| undecodable(name_of(object), cause))
}

/// Key of an object: `ObjectMeta` is field 1; in it name is field 1 and namespace field 3.
fn name_of(object: &[u8]) -> String {
    let (mut name, mut namespace) = (None, None);
    for field in Fields::of(only(object, 1).unwrap_or_default()).flatten() {
        match field.number {
            1 => name = field.text().ok(),
            3 => namespace = field.text().ok(),
            _ => {}
        }
    }
    match name {
        Some(name) => format!("object {:?}", object_key(namespace, name.into())),
        None => format!("an object of {} bytes", object.len()),
    }
}

/// The object inside the envelope.
fn unwrap(enveloped: &[u8]) -> Result<&[u8], Malformed> {
    let unknown = enveloped.strip_prefix(ENVELOPE).ok_or(Malformed("no k8s envelope"))?;
    only(unknown, 2)
}

#[derive(Default)]
struct ListMeta {
    version: u64,
    next: Option<String>,
}

/// `ListMeta`: resourceVersion is field 2, continue field 3.
fn read_list_meta(message: &[u8], meta: &mut ListMeta) -> Result<(), Malformed> {
    for field in Fields::of(message) {
        let field = field?;
        match field.number {
            2 => meta.version = version(field.text()?)?,
            3 => meta.next = Some(field.text()?.to_owned()).filter(|token| !token.is_empty()),
            _ => {}
        }
    }
    Ok(())
}

/// A bookmark is an object of the watched type with little but `ObjectMeta` (field 1):
/// resourceVersion is field 6 there, annotations are field 12.
fn bookmark(object: &[u8]) -> Result<Bookmark, Malformed> {
    let mut mark = Bookmark { version: 0, ends_list: false };
    for field in Fields::of(only(object, 1)?) {
        let field = field?;
        match field.number {
            6 => mark.version = version(field.text()?)?,
            12 => mark.ends_list |= entry(field.bytes()?)? == (LIST_END, "true"),
            _ => {}
        }
    }
    Ok(mark)
}

/// An entry of a map: key is field 1, value field 2.
fn entry(message: &[u8]) -> Result<(&str, &str), Malformed> {
    let (mut key, mut value) = ("", "");
    for field in Fields::of(message) {
        let field = field?;
        match field.number {
            1 => key = field.text()?,
            2 => value = field.text()?,
            _ => {}
        }
    }
    Ok((key, value))
}

#[cfg(test)]
mod tests;
