//! Replies in the forms that Kubernetes components use. The server adds the headers that every
//! reply has.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

/// A complete answer; nothing is streamed.
pub type Reply = Response<Full<Bytes>>;

/// Plain text that no browser may take for anything else.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = with_type(status, "text/plain; charset=utf-8", body);
    reply.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

/// A JSON document.
pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    with_type(status, "application/json", body)
}

/// A Kubernetes `Status` of failure, so that clients show the message. `reason` is one CamelCase
/// word.
pub fn failure(status: StatusCode, reason: &str, message: &str) -> Reply {
    let document = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": {},
        "code": status.as_u16(),
    });
    json(status, document.to_string())
}

/// The body that Go's router gives.
pub fn not_found() -> Reply {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(crate) fn with_type(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}
