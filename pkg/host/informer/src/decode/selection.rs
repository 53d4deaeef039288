//! Marks objects by the selector of their source. Their labels are read from the message once more:
//! slim objects do not keep them, and most sources have no selector.

use std::collections::BTreeMap;

use kube_api::go::null_is_default;
use kube_api::protobuf::{Fields, Malformed, only};
use kube_api::{Cached, LabelSelector};
use serde::Deserialize;

use super::{entry, json, parts_of_event, undecodable, unwrap};
use crate::fault::Fault;
use crate::intake::{Event, Page};
use crate::request::Encoding;

/// Reads one message of a watch, and marks its object if there is a selector.
pub(crate) fn event<T: Cached>(
    encoding: Encoding,
    message: &[u8],
    selector: Option<&LabelSelector>,
) -> Result<Event<T>, Fault> {
    let mut event = super::event(encoding, message)?;
    let (Event::Added(object) | Event::Modified(object) | Event::Deleted(object)) = &mut event
    else {
        return Ok(event);
    };
    if let Some(selector) = selector {
        object.set_selected(match encoding {
            Encoding::Json => {
                let line = json::read::<Line>(message);
                line.map_err(|cause| json::undecodable(what(), cause))?.object.is_selected(selector)
            }
            Encoding::Protobuf => parts_of_event(message)
                .and_then(|(_, object)| is_selected(selector, object))
                .map_err(|cause| undecodable(what(), cause))?,
        });
    }
    Ok(event)
}

/// Reads one page of a list, and marks its objects if there is a selector.
pub(crate) fn page<T: Cached>(
    encoding: Encoding,
    body: &[u8],
    selector: Option<&LabelSelector>,
) -> Result<Page<T>, Fault> {
    let mut page: Page<T> = super::page(encoding, body)?;
    let Some(selector) = selector else { return Ok(page) };
    let marks: Vec<bool> = match encoding {
        Encoding::Json => {
            let list: List = json::read(body).map_err(|cause| json::undecodable(what(), cause))?;
            list.items.iter().map(|item| item.is_selected(selector)).collect()
        }
        Encoding::Protobuf => {
            marks_of_list(selector, body).map_err(|cause| undecodable(what(), cause))?
        }
    };
    // A tolerant collection may have left out objects, so places would not be those of the list.
    if marks.len() != page.items.len() {
        return Err(undecodable(what(), Malformed("the list has objects that cannot be read")));
    }
    for (object, mark) in page.items.iter_mut().zip(marks) {
        object.set_selected(mark);
    }
    Ok(page)
}

fn what() -> String {
    "the labels of an object".to_owned()
}

#[derive(Deserialize)]
struct Line {
    object: Labelled,
}

#[derive(Deserialize)]
struct List {
    #[serde(deserialize_with = "null_is_default")]
    items: Vec<Labelled>,
}

#[derive(Deserialize)]
struct Labelled {
    metadata: Labels,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
}

impl Labelled {
    fn is_selected(&self, selector: &LabelSelector) -> bool {
        let labels = self.metadata.labels.as_ref();
        selector.selects(|key| labels?.get(key).map(AsRef::as_ref))
    }
}

fn marks_of_list(selector: &LabelSelector, body: &[u8]) -> Result<Vec<bool>, Malformed> {
    let mut marks = Vec::new();
    for field in Fields::of(unwrap(body)?) {
        let field = field?;
        if field.number == 2 {
            marks.push(is_selected(selector, field.bytes()?)?);
        }
    }
    Ok(marks)
}

/// `ObjectMeta` is field 1 of an object; labels are field 11 there.
fn is_selected(selector: &LabelSelector, object: &[u8]) -> Result<bool, Malformed> {
    let mut labels = BTreeMap::new();
    for field in Fields::of(only(object, 1)?) {
        let field = field?;
        if field.number == 11 {
            let (key, value) = entry(field.bytes()?)?;
            labels.insert(key, value);
        }
    }
    Ok(selector.selects(|key| labels.get(key).copied()))
}

#[cfg(test)]
mod tests;
