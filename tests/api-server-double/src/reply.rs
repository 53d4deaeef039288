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

/// What a client's service fails with.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whole or streamed.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What becomes of one request.
pub enum Reply {
    /// This status and this object.
    Json(u16, Value),
    /// The same, with a `Retry-After` of so many seconds.
    RetryAfter(u16, u64, Value),
    /// 200 and this object, and what time it is for the server: a `Date`.
    Dated(&'static str, Value),
    /// 200, and these events of a watch, one a line. The end of the stream is that of the answer.
    Watch(BoxStream<'static, Value>),
    /// No answer: the connection is refused.
    Refused,
    /// No answer: the client fails so.
    Fails(BoxError),
    /// No answer, ever.
    Silence,
    /// What this comes to.
    Later(BoxFuture<'static, Reply>),
}

impl Reply {
    /// What a server says that stores all it is sent: a patch is answered by metadata alone.
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
                Self::Watch(events) => return Ok(lines(events)),
                Self::Refused => return Err(io::Error::other("connection refused").into()),
                Self::Fails(error) => return Err(error),
                Self::Silence => return pending().await,
                Self::Later(later) => reply = later.await,
            }
        }
    }
}

fn whole(code: u16, object: &Value) -> Response<Body> {
    let body = Full::from(object.to_string()).map_err(io::Error::other).boxed_unsync();
    response(code, body)
}

fn lines(events: BoxStream<'static, Value>) -> Response<Body> {
    let frames = events.map(|event| Ok(Frame::data(Bytes::from(format!("{event}\n")))));
    response(200, StreamBody::new(frames).boxed_unsync())
}

fn response(code: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).expect("a status code");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
