//! The two forms in which the API server writes objects.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use serde_json::{Value, json};

use super::protobuf;

/// Encoding of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Encoding {
    /// The encoding that the client prefers.
    pub(super) fn asked_for(headers: &HeaderMap) -> Self {
        Self::named(headers, header::ACCEPT)
    }

    /// The encoding that an answer names.
    pub(super) fn of_answer(headers: &HeaderMap) -> Self {
        Self::named(headers, header::CONTENT_TYPE)
    }

    fn named(headers: &HeaderMap, name: http::HeaderName) -> Self {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if value.starts_with(PROTOBUF) { Self::Protobuf } else { Self::Json }
    }

    /// 200 with this body.
    pub(super) fn response(self, body: Bytes) -> Response<Bytes> {
        let mut response = Response::new(body);
        let name = match self {
            Self::Json => HeaderValue::from_static("application/json"),
            Self::Protobuf => HeaderValue::from_static(PROTOBUF),
        };
        response.headers_mut().insert(header::CONTENT_TYPE, name);
        response
    }

    /// A Status object.
    pub(super) fn status(self, status: &Value) -> Bytes {
        match self {
            Self::Json => status.to_string().into(),
            Self::Protobuf => protobuf::status(status),
        }
    }

    /// The event of a watch that carries a Status object.
    pub(super) fn error(self, status: &Value) -> Bytes {
        match self {
            Self::Json => json_event("ERROR", status),
            Self::Protobuf => protobuf::watch_event("ERROR", &protobuf::status(status)),
        }
    }

    /// `metadata.resourceVersion` of an object.
    pub(super) fn resource_version(self, object: &[u8]) -> Option<u64> {
        match self {
            Self::Json => {
                let object: Value = serde_json::from_slice(object).ok()?;
                object["metadata"]["resourceVersion"].as_str()?.parse().ok()
            }
            Self::Protobuf => protobuf::resource_version(object),
        }
    }

    /// The parser that separates the events of a watch.
    pub(super) fn events(self) -> Events {
        match self {
            Self::Json => Events::Lines { at_end: true },
            Self::Protobuf => Events::Messages { left: 0, length: Vec::new() },
        }
    }
}

/// An event of a watch in JSON.
pub(super) fn json_event(kind: &str, object: &Value) -> Bytes {
    format!("{}\n", json!({"type": kind, "object": object})).into()
}

/// Position in the events of a watch up to which they were passed on.
#[derive(Debug)]
pub(super) enum Events {
    /// One a line.
    Lines { at_end: bool },
    /// Four bytes of length before each; `left` of the event under way, `length` as far as read.
    Messages { left: usize, length: Vec<u8> },
}

impl Events {
    pub(super) fn pass(&mut self, data: &[u8]) {
        match self {
            Self::Lines { at_end } => *at_end = data.last().map_or(*at_end, |byte| *byte == b'\n'),
            Self::Messages { left, length } => {
                let mut rest = data;
                while !rest.is_empty() {
                    if *left == 0 {
                        length.push(rest[0]);
                        rest = &rest[1..];
                        if let Ok(bytes) = <[u8; 4]>::try_from(&length[..]) {
                            *left = u32::from_be_bytes(bytes) as usize;
                            length.clear();
                        }
                    }
                    let skipped = rest.len().min(*left);
                    *left -= skipped;
                    rest = &rest[skipped..];
                }
            }
        }
    }

    /// Whether that is the end of a whole event.
    pub(super) fn at_end(&self) -> bool {
        match self {
            Self::Lines { at_end } => *at_end,
            Self::Messages { left, length } => *left == 0 && length.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding;

    #[test]
    fn the_end_of_an_event_is_known_wherever_the_data_is_cut() {
        let messages = [&[0, 0, 0, 2, 7, 7, 0, 0, 0, 0][..], &[0, 0, 0, 1, 9]].concat();
        for (encoding, stream, ends) in [
            (Encoding::Json, b"{}\n{\"a\":1}\n".to_vec(), vec![0, 3, 11]),
            (Encoding::Protobuf, messages, vec![0, 6, 10, 15]),
        ] {
            for cut in 0..=stream.len() {
                let mut events = encoding.events();
                events.pass(&stream[..cut]);
                assert_eq!(events.at_end(), ends.contains(&cut), "{encoding:?} cut at {cut}");
                events.pass(&stream[cut..]);
                assert!(events.at_end(), "{encoding:?} cut at {cut}");
            }
        }
    }
}
