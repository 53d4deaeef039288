//! Replies in the forms that Kubernetes components use. The server adds the headers that every
//! reply has.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

/// A complete answer; nothing is streamed.
pub type Reply = Response<Full<Bytes>>;

/// Plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    with_type(status, "text/plain; charset=utf-8", body)
}

/// A JSON document.
pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    with_type(status, "application/json", body)
}

/// A Kubernetes `Status` of failure, so that clients show the message. `reason` is one CamelCase
/// word.
pub fn failure(status: StatusCode, reason: &str, message: &str) -> Reply {
    status_document(status, reason, message, Some(Empty {}))
}

/// The answer to credentials that are not good; it says no more than that.
pub fn unauthorized() -> Reply {
    status_document(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized", None)
}

/// The answer to a known `user` without a right to the path.
pub fn forbidden(user: &str, method: &Method, path: &str) -> Reply {
    let verb = method.as_str().to_lowercase();
    let message = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
    failure(StatusCode::FORBIDDEN, "Forbidden", &message)
}

/// The fields in the order in which Kubernetes' own components write them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Empty,
    status: &'static str,
    message: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Empty>,
    code: u16,
}

#[derive(Serialize)]
struct Empty {}

fn status_document(
    status: StatusCode,
    reason: &str,
    message: &str,
    details: Option<Empty>,
) -> Reply {
    let (kind, api_version, code) = ("Status", "v1", status.as_u16());
    let failed = "Failure";
    let document = Document {
        kind,
        api_version,
        metadata: Empty {},
        status: failed,
        message,
        reason,
        details,
        code,
    };
    // Texts and numbers can always be written. The line ends, as Kubernetes' own components end it.
    let mut body = serde_json::to_vec(&document).unwrap_or_default();
    body.push(b'\n');
    json(status, body)
}

/// The body that Go's router gives.
pub fn not_found() -> Reply {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// An answer that no browser may take for anything else than it says.
pub(crate) fn with_type(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}
