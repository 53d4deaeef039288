//! Protobuf: `k8s.io/apimachinery/pkg/{apis/meta/v1,runtime}/generated.proto` around the objects
//! that [`model`] reads.
//!
//! Every object stands in an envelope: four bytes `k8s\0`, then `runtime.Unknown` with the object
//! in field 2.

use model::Cached;
use model::protobuf::{Fields, Malformed, version};

use super::{Bookmark, Event, Page, Status};
use crate::fault::Fault;

const MAGIC: &[u8] = b"k8s\0";
const LIST_END: &str = "k8s.io/initial-events-end";

/// Reads a `WatchEvent`: type is field 1, the `RawExtension` of the object field 2.
pub(super) fn event<T: Cached>(message: &[u8]) -> Result<Event<T>, Fault> {
    let read = || {
        let (mut kind, mut object) = ("", &[][..]);
        for field in Fields::of(message) {
            let field = field?;
            match field.number {
                1 => kind = field.text()?,
                2 => object = only(field.bytes()?, 1)?,
                _ => {}
            }
        }
        let object = unwrap(object)?;
        Ok(match kind {
            "ADDED" => Event::Added(item(object)?),
            "MODIFIED" => Event::Modified(item(object)?),
            "DELETED" => Event::Deleted(item(object)?),
            "BOOKMARK" => Event::Bookmark(bookmark(object)?),
            "ERROR" => Event::Error(read_status(object)?),
            _ => return Err(Malformed("an unknown type of watch event")),
        })
    };
    read().map_err(|cause| undecodable(format!("a message of {} bytes", message.len()), cause))
}

/// Reads a list: `ListMeta` is field 1, the items are field 2.
pub(super) fn page<T: Cached>(body: &[u8]) -> Result<Page<T>, Fault> {
    let read = || {
        let mut page = Page { version: 0, next: None, items: Vec::new() };
        for field in Fields::of(unwrap(body)?) {
            let field = field?;
            match field.number {
                1 => read_list_meta(field.bytes()?, &mut page)?,
                2 => page.items.push(item(field.bytes()?)?),
                _ => {}
            }
        }
        Ok(page)
    };
    read().map_err(|cause| undecodable("a page of the list".into(), cause))
}

pub(super) fn status(body: &[u8]) -> Option<Status> {
    unwrap(body).and_then(read_status).ok()
}

fn undecodable(object: String, cause: Malformed) -> Fault {
    Fault::Undecodable { object, cause: Box::new(cause) }
}

fn item<T: Cached>(object: &[u8]) -> Result<T, Malformed> {
    let read = T::FROM_PROTOBUF.ok_or(Malformed("no protobuf of this type was asked for"))?;
    read(object)
}

/// The object inside the envelope.
fn unwrap(enveloped: &[u8]) -> Result<&[u8], Malformed> {
    let unknown = enveloped.strip_prefix(MAGIC).ok_or(Malformed("no k8s envelope"))?;
    only(unknown, 2)
}

/// The bytes of one field.
fn only(message: &[u8], number: u64) -> Result<&[u8], Malformed> {
    for field in Fields::of(message) {
        let field = field?;
        if field.number == number {
            return field.bytes();
        }
    }
    Err(Malformed("a field is missing"))
}

/// `ListMeta`: resourceVersion is field 2, continue field 3.
fn read_list_meta<T>(message: &[u8], page: &mut Page<T>) -> Result<(), Malformed> {
    for field in Fields::of(message) {
        let field = field?;
        match field.number {
            2 => page.version = version(field.text()?)?,
            3 => page.next = Some(field.text()?.to_owned()).filter(|token| !token.is_empty()),
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

/// `Status`: message is field 3, reason field 4, code field 6.
fn read_status(message: &[u8]) -> Result<Status, Malformed> {
    let mut status = Status::default();
    for field in Fields::of(message) {
        let field = field?;
        match (field.number, field.value) {
            (3, _) => field.text()?.clone_into(&mut status.message),
            (4, _) => field.text()?.clone_into(&mut status.reason),
            (6, model::protobuf::Value::Varint(code)) => {
                status.code = u16::try_from(code).unwrap_or(u16::MAX);
            }
            _ => {}
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests;
