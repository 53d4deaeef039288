//! Reads messages of a watch, pages of a list and refusals, in either encoding.

mod json;
mod protobuf;

use kube_api::{Cached, Status};

use crate::fault::Fault;
use crate::intake::{Event, Page};
use crate::request::Encoding;

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
pub(crate) fn status(body: &[u8]) -> Status {
    Status::read(body).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        Status { message: text.chars().take(200).collect(), ..Status::default() }
    })
}
