//! A page: a path, who may ask for it, and what answers. Controllers and the host make them and
//! add them to [`crate::Pages`].

use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use resilience::panics::Panic;

use crate::body::BodyLimit;
use crate::{Access, Peer, Reply};

type Answer = Pin<Box<dyn Future<Output = Reply> + Send>>;
type Handler = Box<dyn Fn(PageRequest) -> Answer + Send + Sync>;

/// What a handler is given. It has no printed form: a webhook reviews objects that hold secrets.
#[derive(Clone)]
pub struct PageRequest {
    /// Any method: the handler decides which it takes.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// The headers but `Authorization` (rule:handlers-see-no-credentials).
    pub headers: HeaderMap,
    /// Empty unless the page reads bodies.
    pub body: Bytes,
    /// Who asks.
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
    /// `path` stands for itself; one that ends in `/` stands for everything below it as well.
    /// `handler` may take its time: after a minute the server answers in its place, and it does so
    /// when the handler panics.
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
