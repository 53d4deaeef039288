//! [`Page`]: a path, its access rule and its handler. [`BodyLimit`]: how much of a request body is read.
//! Controllers and the host make pages; `pages` serves them.

use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Body;
use resilience::panics::Panic;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::debug;

use crate::reply::{self, Reply};
use crate::{Access, Peer};

type Answer = Pin<Box<dyn Future<Output = Reply> + Send>>;
type Handler = Box<dyn Fn(PageRequest) -> Answer + Send + Sync>;

/// A request, as a handler gets it. It has no printed form: a webhook reviews objects that hold secrets.
#[derive(Clone)]
pub struct PageRequest {
    /// Any method: the handler decides which it takes.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// The headers but `Authorization`.
    pub headers: HeaderMap,
    /// Empty unless the page reads bodies.
    pub body: Bytes,
    /// The peer of the request.
    pub peer: Peer,
}

/// One page of a listener.
pub struct Page {
    path: String,
    access: Access,
    body: BodyLimit,
    handler: Handler,
}

impl Page {
    /// A page at `path`; a path that ends in `/` includes everything below it. `handler` may take its time: after a
    /// minute the server answers in its place, and it does so when the handler panics.
    pub fn new<F>(
        path: impl Into<String>,
        access: Access,
        handler: impl Fn(PageRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let handler = move |request| -> Answer { Box::pin(handler(request)) };
        let body = BodyLimit::new(0);
        Self { path: path.into(), access, body, handler: Box::new(handler) }
    }

    /// Reads the body of a request first, when it has at most `bytes`; a longer one is refused, and
    /// so is one that comes when others fill eight times as much. Without this no body is read.
    #[must_use]
    pub fn with_body_limit(self, bytes: usize) -> Self {
        Self { body: BodyLimit::new(bytes), ..self }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }

    pub(crate) fn body(&self) -> &BodyLimit {
        &self.body
    }

    /// Whether this page stands for `path`.
    pub(crate) fn covers(&self, path: &str) -> bool {
        path == self.path || self.path.ends_with('/') && path.starts_with(&self.path)
    }

    /// Asks the handler, and contains its panic.
    pub(crate) async fn answer(&self, request: PageRequest) -> Result<Reply, Panic> {
        resilience::panics::contain(async { (self.handler)(request).await }).await
    }
}

/// Bodies of the longest size that a page holds at once. Of the usual size it holds many more.
const LONGEST_AT_ONCE: usize = 8;

/// How much a page reads of one request, and of all at once.
pub(crate) struct BodyLimit {
    longest: usize,
    room: Arc<Semaphore>,
}

/// A body, which takes its room until this is dropped.
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl BodyLimit {
    /// With 0 no body is read.
    pub(crate) fn new(longest: usize) -> Self {
        let room = longest.saturating_mul(LONGEST_AT_ONCE).min(Semaphore::MAX_PERMITS);
        Self { longest, room: Arc::new(Semaphore::new(room)) }
    }

    /// Reads a body to its end.
    ///
    /// # Errors
    /// The reply to a body that is too long, that finds no room, or that the peer broke off.
    pub(crate) async fn read<B>(&self, body: B, headers: &HeaderMap) -> Result<HeldBody, Reply>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if self.longest == 0 {
            return Ok(HeldBody { bytes: Bytes::new(), _room: None });
        }
        let announced =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: usize| length > self.longest) {
            return Err(self.too_large());
        }
        let (mut body, mut bytes, mut room) = (pin!(body), BytesMut::new(), None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(broken_off)?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > self.longest {
                return Err(self.too_large());
            }
            if !self.hold(data.len(), &mut room) {
                let message = "too many large requests at once; try again";
                return Err(reply::failure(
                    StatusCode::TOO_MANY_REQUESTS,
                    "TooManyRequests",
                    message,
                ));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(HeldBody { bytes: bytes.freeze(), _room: room })
    }

    /// Takes room for the bytes that have arrived: announced bytes take none.
    fn hold(&self, length: usize, room: &mut Option<OwnedSemaphorePermit>) -> bool {
        let more = u32::try_from(length).ok();
        let more = more.and_then(|more| Arc::clone(&self.room).try_acquire_many_owned(more).ok());
        let is_held = more.is_some();
        match (room, more) {
            (Some(room), Some(more)) => room.merge(more),
            (room, Some(more)) => *room = Some(more),
            (_, None) => {}
        }
        is_held
    }

    fn too_large(&self) -> Reply {
        let message = format!("the request body has more than {} bytes", self.longest);
        reply::failure(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &message)
    }
}

fn broken_off(err: impl Into<Box<dyn Error + Send + Sync>>) -> Reply {
    let err = err.into();
    debug!(v = 5, logger = "serving", %err, "Cannot read request body");
    reply::failure(StatusCode::BAD_REQUEST, "BadRequest", "the request body ended too early")
}
