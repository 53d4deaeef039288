//! [`Reply`]: what becomes of a request.

use std::future::pending;
use std::io;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use http::header::{CONTENT_TYPE, DATE, HeaderValue, RETRY_AFTER};
use http::{Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::{Value, json};

use crate::asked::Asked;

/// Error of a client's service.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whole or streamed.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Fate of one request.
pub enum Reply {
    /// An answer with this status and this object.
    Json(u16, Value),
    /// A status, a `Retry-After` in seconds and an object.
    RetryAfter(u16, u64, Value),
    /// 200 and this object, and what time it is for the server: a `Date`.
    Dated(&'static str, Value),
    /// 200, and these events of a watch, one a line. The end of the stream is that of the answer.
    Watch(BoxStream<'static, Value>),
    /// 200 with this content type and body. The end of the stream is that of the answer, an error in
    /// it breaks the connection off.
    Body(&'static str, BoxStream<'static, io::Result<Bytes>>),
    /// The connection is refused.
    Refused,
    /// The client fails with this error.
    Fails(BoxError),
    /// The request is never answered.
    Silence,
    /// The reply that the future returns.
    Later(BoxFuture<'static, Reply>),
}

impl Reply {
    /// The answer of a server that stores everything: only metadata to a patch, the object otherwise.
    pub fn stored(asked: &Asked) -> Self {
        let object = match *asked.method() {
            Method::PATCH => json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": {"name": "some"},
            }),
            _ => asked.json(),
        };
        Self::Json(200, object)
    }

    /// A `Status` of failure with this code and reason.
    pub fn failure(code: u16, reason: &str) -> Self {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": reason,
        });
        Self::Json(code, status)
    }

    /// The response, or how the call fails.
    pub(crate) async fn resolve(self) -> Result<Response<Body>, BoxError> {
        let mut reply = self;
        loop {
            match reply {
                Self::Json(code, object) => return Ok(whole(code, &object)),
                Self::RetryAfter(code, seconds, object) => {
                    let mut response = whole(code, &object);
                    response.headers_mut().insert(RETRY_AFTER, seconds.into());
                    return Ok(response);
                }
                Self::Dated(date, object) => {
                    let mut response = whole(200, &object);
                    response.headers_mut().insert(DATE, HeaderValue::from_static(date));
                    return Ok(response);
                }
                Self::Watch(events) => {
                    let lines = events.map(|event| Ok(Bytes::from(format!("{event}\n"))));
                    return Ok(streamed(JSON, lines.boxed()));
                }
                Self::Body(content_type, body) => return Ok(streamed(content_type, body)),
                Self::Refused => return Err(io::Error::other("connection refused").into()),
                Self::Fails(error) => return Err(error),
                Self::Silence => return pending().await,
                Self::Later(later) => reply = later.await,
            }
        }
    }
}

const JSON: &str = "application/json";

fn whole(code: u16, object: &Value) -> Response<Body> {
    let body = Full::from(object.to_string()).map_err(io::Error::other).boxed_unsync();
    let mut response = response(JSON, body);
    *response.status_mut() = StatusCode::from_u16(code).expect("a status code");
    response
}

fn streamed(
    content_type: &'static str,
    body: BoxStream<'static, io::Result<Bytes>>,
) -> Response<Body> {
    let frames = body.map(|bytes| bytes.map(Frame::data));
    response(content_type, StreamBody::new(frames).boxed_unsync())
}

fn response(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
