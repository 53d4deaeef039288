//! [`Multiplexed`]: one HTTP/2 connection for all requests.
//!
//! hyper's client hands each request through a queue to one task and starts another for its answer;
//! here the caller itself does both. hyper also gives the bytes of a body to the connection after it
//! has polled them, in a task of its own, so [`PendingSends`](super::pending_sends::PendingSends)
//! could not know when a write is given to the connection
//! (`rule:held-up-writes-are-asked-again`). A server that does not offer HTTP/2 is left to hyper.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use http::uri::{Authority, Scheme};
use http::{Request, Uri};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connect, Connection};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tower::{BoxError, Service, ServiceExt as _};

use crate::wire::channel::Channel;
use crate::wire::exchange::{Answering, Exchange, RequestBody, WireError};
use crate::wire::keep_alive::Load;

/// The connection, and how to make another.
pub(super) struct Multiplexed<C> {
    route: C,
    /// For a server that does not offer HTTP/2.
    single: legacy::Client<C, RequestBody>,
    slot: Arc<Slot>,
}

/// Holds the connection for the next request.
#[derive(Default)]
struct Slot(Mutex<Held>);

#[derive(Default)]
struct Held {
    current: Option<Current>,
    /// How many connections have been begun.
    begun: u64,
}

impl Slot {
    /// The connection of this number is of no use any more; the next request makes another.
    fn forget(&self, number: u64) {
        let mut held = self.0.lock();
        if held.current.as_ref().is_some_and(|current| current.number == number) {
            held.current = None;
        }
    }
}

/// A connection that is made or being made; all who need it wait for the same one, and it is made
/// to the end when they give up.
#[derive(Clone)]
struct Current {
    number: u64,
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    channel: Shared<BoxFuture<'static, Opened>>,
}

/// `None`: the server does not offer HTTP/2.
type Opened = Result<Option<Arc<Channel>>, WireError>;

impl<C> Multiplexed<C>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    pub(super) fn new(route: C, single: legacy::Client<C, RequestBody>) -> Self {
        Self { route, single, slot: Arc::default() }
    }

    /// The connection to the server of `uri`; opens one if necessary.
    fn current(&self, uri: &Uri) -> Current {
        let mut held = self.slot.0.lock();
        if let Some(current) = &held.current
            && current.authority.as_ref() == uri.authority()
            && current.scheme.as_ref() == uri.scheme()
        {
            return current.clone();
        }
        held.begun += 1;
        let number = held.begun;
        let opening = tokio::spawn(open_into(
            Arc::clone(&self.slot),
            number,
            open(self.route.clone(), uri.clone()),
        ));
        let opened =
            async { opening.await.unwrap_or_else(|error| Err(WireError::unprocessed(error))) };
        let (scheme, authority) = (uri.scheme().cloned(), uri.authority().cloned());
        let made = Current { number, scheme, authority, channel: opened.boxed().shared() };
        held.current.insert(made).clone()
    }
}

/// A failure concerns the callers that wait now; later ones open another connection.
async fn open_into(slot: Arc<Slot>, number: u64, opening: impl Future<Output = Opened>) -> Opened {
    let opened = opening.await;
    if opened.is_err() {
        slot.forget(number);
    }
    opened
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
    let io = route.oneshot(uri).await.map_err(WireError::unprocessed)?;
    if !io.connected().is_negotiated_h2() {
        return Ok(None);
    }
    let channel = Channel::open(TokioIo::new(io), Load::of_process())
        .await
        .map_err(WireError::unprocessed)?;
    Ok(Some(Arc::new(channel)))
}

impl<C> Exchange for Multiplexed<C>
where
    C: Connect + Service<Uri> + Clone + Send + Sync + 'static,
    <C as Service<Uri>>::Response: Read + Write + Connection + Send + Unpin + 'static,
    <C as Service<Uri>>::Future: Send + 'static,
    <C as Service<Uri>>::Error: Into<BoxError>,
{
    fn send(&self, request: Request<RequestBody>) -> Answering<'_> {
        Box::pin(async move {
            let mut is_second = false;
            loop {
                let current = self.current(request.uri());
                let opened = current.channel.clone().await;
                let Some(channel) = opened.inspect_err(|_| self.slot.forget(current.number))?
                else {
                    return self.single.send(request).await;
                };
                match channel.turn().await {
                    Ok(turn) => return channel.send(turn, request).await,
                    // It has ended since its last request, and nothing of this one was sent.
                    Err(error) => {
                        self.slot.forget(current.number);
                        if is_second {
                            return Err(WireError::unprocessed(error));
                        }
                        is_second = true;
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
