//! [`Multiplexed`]: one HTTP/2 connection for all requests (`rule:one-connection-for-all`).
//!
//! hyper's client hands each request through a queue to one task and starts another for its answer;
//! here the caller itself does both. A server that does not offer HTTP/2 is left to hyper.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use http_body::Body;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connect, Connection};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tower::{BoxError, Service, ServiceExt as _};

use super::answer::AnswerBody;
use super::channel::Channel;
use super::error::WireError;
use super::exchange::{Answering, Wire};

/// The connection, and how to make another.
pub(super) struct Multiplexed<C, B> {
    route: C,
    /// For a server that does not offer HTTP/2.
    single: legacy::Client<C, B>,
    current: Mutex<Option<Current>>,
}

/// A connection that is made or being made; all who need it wait for the same one, and it is made to
/// the end when they give up.
#[derive(Clone)]
struct Current {
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    channel: Shared<BoxFuture<'static, Opened>>,
}

/// `None`: the server does not offer HTTP/2.
type Opened = Result<Option<Arc<Channel>>, WireError>;

impl<C, B> Multiplexed<C, B>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    pub(super) fn new(route: C, single: legacy::Client<C, B>) -> Self {
        Self { route, single, current: Mutex::new(None) }
    }

    /// The connection to the server of `uri`, made now if there is none.
    fn current(&self, uri: &Uri) -> Current {
        let mut current = self.current.lock();
        if let Some(current) = &*current
            && current.authority.as_ref() == uri.authority()
            && current.scheme.as_ref() == uri.scheme()
        {
            return current.clone();
        }
        let opening = tokio::spawn(open(self.route.clone(), uri.clone()));
        let opened =
            async { opening.await.unwrap_or_else(|error| Err(WireError::connecting(error))) };
        let (scheme, authority) = (uri.scheme().cloned(), uri.authority().cloned());
        let made = Current { scheme, authority, channel: opened.boxed().shared() };
        current.insert(made).clone()
    }

    /// It is of no use any more; the next request makes another.
    fn forget(&self, spent: &Current) {
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|current| current.channel.ptr_eq(&spent.channel)) {
            *current = None;
        }
    }
}

async fn open<C>(route: C, uri: Uri) -> Opened
where
    C: Service<Uri>,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
{
    if uri.scheme() == Some(&Scheme::HTTP) {
        return Ok(None);
    }
    let io = route.oneshot(uri).await.map_err(WireError::connecting)?;
    if !io.connected().is_negotiated_h2() {
        return Ok(None);
    }
    let channel = Channel::open(TokioIo::new(io)).await.map_err(WireError::connecting)?;
    Ok(Some(Arc::new(channel)))
}

impl<C, B> Multiplexed<C, B>
where
    C: Connect + Service<Uri> + Clone + Send + Sync + 'static,
    <C as Service<Uri>>::Response: Read + Write + Connection + Send + Unpin + 'static,
    <C as Service<Uri>>::Future: Send + 'static,
    <C as Service<Uri>>::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    async fn exchange(&self, request: Request<B>) -> Result<Response<AnswerBody>, WireError> {
        let mut is_second = false;
        loop {
            let current = self.current(request.uri());
            let opened = current.channel.clone().await;
            let Some(channel) = opened.inspect_err(|_| self.forget(&current))? else {
                return self.single.send(request).await;
            };
            match channel.turn().await {
                Ok(turn) => return channel.send(turn, request).await,
                // It has ended since its last request, and nothing of this one was sent.
                Err(error) => {
                    self.forget(&current);
                    if is_second {
                        return Err(WireError::connecting(error));
                    }
                    is_second = true;
                }
            }
        }
    }
}

impl<C, B> Wire<B> for Multiplexed<C, B>
where
    C: Connect + Service<Uri> + Clone + Send + Sync + 'static,
    <C as Service<Uri>>::Response: Read + Write + Connection + Send + Unpin + 'static,
    <C as Service<Uri>>::Future: Send + 'static,
    <C as Service<Uri>>::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    fn send(&self, request: Request<B>) -> Answering<'_> {
        Box::pin(self.exchange(request))
    }
}

#[cfg(test)]
mod tests;
