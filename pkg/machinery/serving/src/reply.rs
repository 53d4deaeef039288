//! Responses with the headers every path shares (host.md 5.4).

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use http_body_util::Full;

/// A complete answer; nothing is streamed.
pub(crate) type Reply = Response<Full<Bytes>>;

/// Plain text that no browser may take for anything else.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = with_type(status, "text/plain; charset=utf-8", body);
    reply.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

/// A JSON document.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    with_type(status, "application/json", body)
}

/// A metrics page. `start` is the process start in Unix seconds: scrapers use it to tell a restart
/// from a counter that was reset.
pub(crate) fn metrics(body: impl Into<Bytes>, start: Option<i64>) -> Reply {
    let mut reply = with_type(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", body);
    if let Some(start) = start {
        let name = HeaderName::from_static("process-start-time-unix");
        reply.headers_mut().insert(name, HeaderValue::from(start));
    }
    reply
}

/// The body Go's router gives, which stock's paths show (host.md 5.4).
pub(crate) fn not_found() -> Reply {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}
