//! Answers in Google's form.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response};
use http_body_util::Full;
use serde_json::{Value, json};

pub(crate) type Reply = Response<Full<Bytes>>;

pub(crate) fn ok(body: &Value) -> Reply {
    with(200, body)
}

/// A refusal.
pub(crate) fn error(status: u16, reason: &str, message: &str) -> Reply {
    let error = json!({"message": message, "domain": "global", "reason": reason});
    with(status, &json!({"error": {"code": status, "message": message, "errors": [error]}}))
}

pub(crate) fn retry_after(seconds: u64) -> Reply {
    let mut reply = error(429, "", "too many requests");
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    reply
}

fn with(status: u16, body: &Value) -> Reply {
    let mut reply = Response::new(Full::from(body.to_string()));
    *reply.status_mut() = status.try_into().expect("a status");
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
