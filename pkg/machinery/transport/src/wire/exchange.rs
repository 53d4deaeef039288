//! [`Wire`]: a request and its answer, over HTTP/1.1 by hyper's client.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use tower::BoxError;

use super::answer::AnswerBody;
use super::error::WireError;

/// Sends requests with bodies of `B` through one pool of connections. Dropping the last handle
/// closes those that are idle, and the others when their last answer has ended.
pub trait Wire<B>: Send + Sync {
    /// Sends one request, whose URI is absolute. Giving up the future gives up the request.
    fn send(&self, request: Request<B>) -> Answering<'_>;
}

/// A request under way.
pub type Answering<'a> = BoxFuture<'a, Result<Response<AnswerBody>, WireError>>;

impl<C, B> Wire<B> for legacy::Client<C, B>
where
    C: Connect + Clone + Send + Sync + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    fn send(&self, request: Request<B>) -> Answering<'_> {
        let answering = self.request(request);
        Box::pin(async move { Ok(answering.await?.map(AnswerBody::from)) })
    }
}
