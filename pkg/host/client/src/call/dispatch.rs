//! The innermost service: the last look at the fence, the server's own time limit, then the wire.
//! Built by `stack`; its request has all headers.
//!
//! Every write tells the server how long it may work on it: the parameter `timeout` of its URL,
//! which the API server makes the deadline of the request (`rule:writes-end-with-their-timeout`).
//! It is what is left of the attempt, or of our lease if that is less, and is judged here, after
//! every wait that the client knows of.
//!
//! Between here and the wire lies a wait without a tight bound: a connection may take ten
//! seconds to open, and a stopped process wakes up anywhere. So the fence is asked twice: when the
//! request arrives here, and again when the connection takes the body. A body that is refused
//! leaves the server with a truncated request, which it rejects. A write without a body is asked
//! for one too, and then ends it: nothing of it leaves unasked
//! (`rule:held-up-writes-are-asked-again`). The same spot tells a caller for certain that a write
//! never left: its body was never taken, and is refused from the moment on at which the caller is
//! told so. What was taken and not yet written is asked about a third time
//! (`rule:held-up-writes-are-asked-again`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use kube::client::Body;
use parking_lot::Mutex;
use resilience::{Fence, Fenced};
use tower::BoxError;
use transport::{AnswerBody, Endpoint, Protocol, SendPermit, TlsError, Wire};

use crate::call::request::{
    Progress, SendCheck, Sender, Withdrawn, is_mutating, set_dry_run, set_timeout,
};
use crate::identity::credentials::Credentials;
use crate::identity::snapshot::{Shown, Snapshot};

/// How long a request may take from here into a connection without being refused there. Taken off
/// the time that the lease has left.
const SENDING: Duration = Duration::from_millis(250);

/// Sends requests over a wire.
pub(crate) struct Dispatch {
    link: Arc<Link>,
    user_agent: HeaderValue,
    fence: Option<Fence>,
    dry_run: bool,
}

impl Dispatch {
    pub(crate) fn new(
        link: Arc<Link>,
        user_agent: HeaderValue,
        fence: Option<Fence>,
        dry_run: bool,
    ) -> Self {
        Self { link, user_agent, fence, dry_run }
    }

    /// Gives a write its time limit, and its body a guard.
    fn guard(&self, mut request: Request<Body>) -> Result<Request<GuardedBody>, BoxError> {
        let progress = request.extensions_mut().remove::<Arc<Progress>>();
        if !is_mutating(request.method()) {
            let timeout = Duration::ZERO;
            return Ok(request.map(|body| GuardedBody::new(body, None, progress, timeout)));
        }
        let of_attempt = progress.as_ref().map_or(Duration::MAX, |p| p.time_left());
        if of_attempt.is_zero() {
            return Err("no time left".into());
        }
        let of_lease = self.fence.as_ref().map_or(Duration::MAX, Fence::remaining);
        let of_lease = of_lease.saturating_sub(SENDING);
        if of_lease.is_zero() {
            return Err(Fenced.into());
        }
        // Zero would mean no limit at all.
        let timeout = of_attempt.min(of_lease).max(Duration::from_millis(1));
        if self.dry_run {
            // The API server takes the options of a DELETE from its body, and then none from the URL.
            if request.method() == Method::DELETE && !request.body().is_end_stream() {
                return Err("a DELETE with options is not sent in a dry run".into());
            }
            set_dry_run(request.uri_mut())?;
        }
        if timeout < Duration::MAX {
            set_timeout(request.uri_mut(), timeout)?;
        }
        if let Some(progress) = &progress {
            progress.leaves(timeout);
        }
        let fence = self.fence.clone();
        if let Some(fence) = self.fence.clone() {
            let permit = SendPermit::new(move || fence.remaining() >= timeout);
            request.extensions_mut().insert(permit);
        }
        Ok(request.map(|body| GuardedBody::new(body, fence, progress, timeout)))
    }
}

impl Sender for Dispatch {
    type Answer = AnswerBody;
    type Error = BoxError;

    async fn send(&self, mut request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
        request.headers_mut().insert(USER_AGENT, self.user_agent.clone());
        let signed = request.extensions_mut().remove::<Arc<Snapshot>>();
        let signed = signed.ok_or("the request got no credentials")?;
        let wire = self.link.wire(&signed)?;
        if let Some(address) = signed.address(request.uri()) {
            *request.uri_mut() = address;
        }
        let check = request.extensions_mut().remove::<SendCheck>();
        let request = self.guard(request)?;
        if check.is_some_and(|SendCheck(go)| !go()) {
            return Err(Withdrawn.into());
        }
        Ok(wire.send(request).await?)
    }
}

/// The attempt ended before the connection asked for the body.
#[derive(Debug, thiserror::Error)]
#[error("the attempt has ended")]
struct Ended;

/// A request body that asks the fence and the attempt when the connection takes it.
struct GuardedBody {
    body: Body,
    fence: Option<Fence>,
    progress: Option<Arc<Progress>>,
    /// The time limit that the server was given; zero for a read.
    timeout: Duration,
    /// The connection has begun to take it.
    leaving: bool,
}

impl GuardedBody {
    fn new(
        body: Body,
        fence: Option<Fence>,
        progress: Option<Arc<Progress>>,
        timeout: Duration,
    ) -> Self {
        Self { body, fence, progress, timeout, leaving: false }
    }

    /// A write whose connection has not asked for its body yet, and has to although it is empty.
    fn is_empty_and_held(&self) -> bool {
        let write = !self.timeout.is_zero();
        write && !self.leaving && self.body.is_end_stream()
    }

    /// Asks the fence and the attempt, until both have let the body go.
    fn leave(&mut self) -> Result<(), BoxError> {
        if self.leaving {
            return Ok(());
        }
        if self.fence.as_ref().is_some_and(|fence| fence.remaining() < self.timeout) {
            if let Some(progress) = &self.progress {
                progress.refuse_body();
            }
            return Err(Fenced.into());
        }
        if self.progress.as_ref().is_some_and(|progress| !progress.take_body(self.timeout)) {
            return Err(Ended.into());
        }
        self.leaving = true;
        Ok(())
    }
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Err(error) = self.leave() {
            return Poll::Ready(Some(Err(error)));
        }
        Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && !self.is_empty_and_held()
    }

    fn size_hint(&self) -> SizeHint {
        // A connection that knows it to be empty would not ask for it.
        if self.is_empty_and_held() { SizeHint::default() } else { self.body.size_hint() }
    }
}

/// One pool of connections that follows the credentials. What is under way on an old connection
/// goes on there to its end.
pub(crate) struct Link {
    credentials: Arc<Credentials>,
    shown: Shown,
    protocol: Protocol,
    /// Instead of connections.
    given: Option<Wire>,
    pool: Mutex<Pool>,
}

struct Pool {
    generation: u64,
    endpoint: Endpoint,
    wire: Wire,
}

impl Link {
    /// Opens no connection before the first request.
    pub(crate) fn new(
        credentials: Arc<Credentials>,
        shown: Shown,
        protocol: Protocol,
        given: Option<Wire>,
    ) -> Result<Self, TlsError> {
        let snapshot = credentials.current();
        let endpoint = snapshot.endpoint(&credentials.tls, shown, protocol)?;
        let wire = given.clone().unwrap_or_else(|| transport::open(&endpoint));
        let pool = Mutex::new(Pool { generation: snapshot.generation, endpoint, wire });
        Ok(Self { credentials, shown, protocol, given, pool })
    }

    /// A second pool of connections with the same credentials.
    pub(crate) fn another(&self, protocol: Protocol) -> Result<Self, TlsError> {
        Self::new(Arc::clone(&self.credentials), self.shown, protocol, self.given.clone())
    }

    /// The pool for these credentials. A request that took them just before they changed gets a
    /// connection of its own: it must not show the new ones.
    pub(crate) fn wire(&self, snapshot: &Snapshot) -> Result<Wire, TlsError> {
        let mut pool = self.pool.lock();
        if snapshot.generation < pool.generation {
            let endpoint = snapshot.endpoint(&self.credentials.tls, self.shown, self.protocol)?;
            return Ok(transport::open(&endpoint));
        }
        if snapshot.generation > pool.generation {
            self.renew(&mut pool, snapshot)?;
        }
        Ok(pool.wire.clone())
    }

    /// A new token alone needs no new connection.
    fn renew(&self, pool: &mut Pool, snapshot: &Snapshot) -> Result<(), TlsError> {
        let endpoint = snapshot.endpoint(&self.credentials.tls, self.shown, self.protocol)?;
        if !endpoint.shares_connections_with(&pool.endpoint) {
            pool.wire = transport::open(&endpoint);
        }
        pool.endpoint = endpoint;
        pool.generation = snapshot.generation;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
