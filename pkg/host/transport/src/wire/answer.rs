//! [`AnswerBody`]: the body of an answer, whichever way it came.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tower::BoxError;

use super::keep_alive::Heard;

/// The body of an answer. Dropping it before its end gives up the rest.
#[derive(Debug)]
pub struct AnswerBody(Source);

#[derive(Debug)]
enum Source {
    Hyper(Incoming),
    Stream(RecvStream, Arc<Heard>),
}

impl AnswerBody {
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
            Source::Stream(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Hyper(body) => body.size_hint(),
            Source::Stream(..) => SizeHint::default(),
        }
    }
}
