//! Counts the bytes of an answer as they are read, for `rest_client_response_size_bytes`. Put
//! around the body by the attempt layer: the API server leaves out `Content-Length` on anything
//! large.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use prometheus::Histogram;

/// A body that reports its size when it is dropped.
pub(crate) struct SizedBody<B> {
    body: B,
    read: u64,
    /// `None` for a watch, which has no size.
    size: Option<Histogram>,
}

impl<B> SizedBody<B> {
    pub(crate) fn new(body: B, size: Option<Histogram>) -> Self {
        Self { body, read: 0, size }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for SizedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.read += data.len() as u64;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for SizedBody<B> {
    fn drop(&mut self) {
        if let Some(size) = &self.size {
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bytes")]
            size.observe(self.read as f64);
        }
    }
}
