//! [`Wire`]: requests and their answers, whichever way they go. HTTP/1.1 is hyper's client.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use tower::BoxError;

use crate::wire::keep_alive::Heard;

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

    /// A wire that hands each request to `send` and has no connection: for simulations. `send` takes the
    /// body when the request leaves, and asks its [`SendPermit`](crate::SendPermit) before that.
    pub fn of(
        send: impl Fn(Request<RequestBody>) -> Answering<'static> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Function(send)))
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
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

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

/// A way without connections.
struct Function<F>(F);

impl<F: Fn(Request<RequestBody>) -> Answering<'static> + Send + Sync> Exchange for Function<F> {
    fn send(&self, request: Request<RequestBody>) -> Answering<'_> {
        (self.0)(request)
    }
}

/// The body of an answer. Dropping it before its end gives up the rest.
#[derive(Debug)]
pub struct AnswerBody(Source);

#[derive(Debug)]
enum Source {
    Hyper(Incoming),
    Stream(RecvStream, Arc<Heard>),
    Made(UnsyncBoxBody<Bytes, BoxError>),
}

impl AnswerBody {
    /// An answer of [`Wire::of`].
    pub fn made(body: UnsyncBoxBody<Bytes, BoxError>) -> Self {
        Self(Source::Made(body))
    }

    pub(super) fn of_stream(stream: RecvStream, heard: Arc<Heard>) -> Self {
        Self(Source::Stream(stream, heard))
    }
}

impl From<Incoming> for AnswerBody {
    fn from(body: Incoming) -> Self {
        Self(Source::Hyper(body))
    }
}

/// True for the reset of a server that has answered and wants no more of the request. The same
/// reason in a GOAWAY says nothing about this answer.
fn is_whole(end: &h2::Error) -> bool {
    end.is_reset() && end.is_remote() && end.reason() == Some(Reason::NO_ERROR)
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Source::Hyper(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Source::Made(body) => Pin::new(body).poll_frame(cx),
            Source::Stream(stream, heard) => {
                let data = ready!(stream.poll_data(cx));
                heard.note();
                Poll::Ready(match data {
                    Some(Ok(data)) => {
                        let taken = stream.flow_control().release_capacity(data.len());
                        Some(taken.map(|()| Frame::data(data)).map_err(Into::into))
                    }
                    // The server has said all that it had to say.
                    Some(Err(error)) if is_whole(&error) => None,
                    Some(Err(error)) => Some(Err(error.into())),
                    None => None,
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Hyper(body) => body.is_end_stream(),
            Source::Made(body) => body.is_end_stream(),
            Source::Stream(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Hyper(body) => body.size_hint(),
            Source::Made(body) => body.size_hint(),
            Source::Stream(..) => SizeHint::default(),
        }
    }
}

/// Why a request has no answer. Reads as its cause.
#[derive(Clone, Debug)]
pub struct WireError {
    unprocessed: bool,
    cause: Arc<dyn Error + Send + Sync>,
}

impl WireError {
    /// Nothing was sent, or the server told that it did nothing with it.
    pub fn unprocessed(cause: impl Into<BoxError>) -> Self {
        Self { unprocessed: true, cause: cause.into().into() }
    }

    /// The connection or the exchange broke, and the server may have carried out the request.
    pub fn broken(cause: impl Into<BoxError>) -> Self {
        Self { unprocessed: false, cause: cause.into().into() }
    }

    /// The stream of a request ended before its answer
    /// (`rule:refused-requests-were-not-processed`).
    pub(super) fn of_stream(error: h2::Error) -> Self {
        let is_refusal = error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM);
        if is_refusal && error.is_remote() { Self::unprocessed(error) } else { Self::broken(error) }
    }

    /// True when the server has not processed the request and never will.
    pub fn is_unprocessed(&self) -> bool {
        self.unprocessed
    }
}

impl From<legacy::Error> for WireError {
    fn from(error: legacy::Error) -> Self {
        let unprocessed = error.is_connect();
        Self { unprocessed, cause: Arc::new(error) }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for WireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorChain;

    #[test]
    fn the_cause_is_found_by_its_type_and_reported_once() {
        let error = WireError::broken(h2::Error::from(Reason::CANCEL));
        assert!(error.source().unwrap().is::<h2::Error>());
        assert_eq!(ErrorChain(&error).to_string(), error.to_string());
    }
}
