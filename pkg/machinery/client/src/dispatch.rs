//! The innermost service: the last look at the fence, then the wire. Built by `stack`; its request
//! has all headers.
//!
//! Between the fence and the wire lies a wait that nobody bounds tightly: a connection may take ten
//! seconds to open, and a stopped process wakes up anywhere. So the fence is asked twice: when the
//! request arrives here, and again when the connection takes the body. A body that is refused
//! leaves the server with a truncated request, which it rejects. The same spot tells a caller for
//! certain that a write never left: its body was never taken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use kube::client::Body;
use tower::{BoxError, Service};

use crate::fence::{Fence, Fenced};
use crate::request::{SendCheck, Withdrawn, is_mutating};
use crate::transport::Wire;

const KEPT: u8 = 0;
const TAKEN: u8 = 1;
const REFUSED: u8 = 2;

/// How far the body of one attempt got; put into the request's extensions by the attempt layer.
#[derive(Debug)]
pub(crate) struct Progress {
    /// A request without a body may leave unseen.
    has_body: bool,
    body: AtomicU8,
}

impl Progress {
    pub(crate) fn of(request: &Request<Body>) -> Self {
        Self { has_body: !request.body().is_end_stream(), body: AtomicU8::new(KEPT) }
    }

    /// The body was never taken, so the server cannot have acted on the request.
    pub(crate) fn body_was_kept(&self) -> bool {
        self.has_body && self.body.load(Ordering::Acquire) == KEPT
    }

    #[cfg(test)]
    pub(crate) fn take_for_test(&self) {
        self.body.store(TAKEN, Ordering::Release);
    }

    /// The fence had closed when the body was asked for.
    pub(crate) fn was_refused(&self) -> bool {
        self.body.load(Ordering::Acquire) == REFUSED
    }
}

/// Sends requests over a wire. Cheap to clone; always ready.
#[derive(Clone)]
pub(crate) struct Dispatch {
    wire: Arc<dyn Wire>,
    fence: Option<Fence>,
}

impl Dispatch {
    pub(crate) fn new(wire: Arc<dyn Wire>, fence: Option<Fence>) -> Self {
        Self { wire, fence }
    }
}

impl Service<Request<Body>> for Dispatch {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let progress = request.extensions_mut().remove::<Arc<Progress>>();
        let fence = self.fence.clone().filter(|_| is_mutating(request.method()));
        if let Some(Err(fenced)) = fence.as_ref().map(Fence::check) {
            return Box::pin(std::future::ready(Err(fenced.into())));
        }
        let check = request.extensions_mut().remove::<SendCheck>();
        if check.is_some_and(|SendCheck(go)| !go()) {
            return Box::pin(std::future::ready(Err(Withdrawn.into())));
        }
        let sending = self.wire.send(request.map(|body| GuardedBody { body, fence, progress }));
        Box::pin(async move { Ok(sending.await?) })
    }
}

/// A request body that asks the fence when the connection takes it.
pub(crate) struct GuardedBody {
    body: Body,
    fence: Option<Fence>,
    /// Taken out when the body is.
    progress: Option<Arc<Progress>>,
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let open = self.fence.take().is_none_or(|fence| fence.check().is_ok());
        if let Some(progress) = self.progress.take() {
            progress.body.store(if open { TAKEN } else { REFUSED }, Ordering::Release);
        }
        if !open {
            return Poll::Ready(Some(Err(Fenced.into())));
        }
        Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
