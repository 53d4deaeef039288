//! [`Wire`]: requests and their answers, whichever way they go. HTTP/1.1 is hyper's client.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use tower::BoxError;

use super::answer::AnswerBody;
use super::error::WireError;

/// The connections to one endpoint; clones share them. Dropping the last handle closes those that
/// are idle, and the others when their last answer has ended.
#[derive(Clone)]
pub struct Wire(Arc<dyn Exchange>);

/// A request under way.
pub type Answering<'a> = BoxFuture<'a, Result<Response<AnswerBody>, WireError>>;

impl Wire {
    pub(super) fn over(exchange: impl Exchange + 'static) -> Self {
        Self(Arc::new(exchange))
    }

    /// Sends one request, whose URI is absolute. Giving up the future gives up the request.
    pub fn send<B>(&self, request: Request<B>) -> Answering<'_>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.0.send(request.map(|body| body.map_err(Into::into).boxed_unsync()))
    }
}

/// The body of a request. One type for all: each would be another copy of HTTP and TLS in the
/// program.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// A way to send requests.
pub(super) trait Exchange: Send + Sync {
    /// See [`Wire::send`].
    fn send(&self, request: Request<RequestBody>) -> Answering<'_>;
}

impl<C: Connect + Clone + Send + Sync + 'static> Exchange for legacy::Client<C, RequestBody> {
    fn send(&self, request: Request<RequestBody>) -> Answering<'_> {
        let answering = self.request(request);
        Box::pin(async move { Ok(answering.await?.map(AnswerBody::from)) })
    }
}
