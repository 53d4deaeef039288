//! [`Link`]: one open connection to one server, for one request at a time. It has no task of its
//! own: it is driven by the request under way, and between probes it is a stream without HTTP.

use std::future::{Future, poll_fn};
use std::mem::replace;
use std::pin::{Pin, pin};
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use health::{Code, Lifetime};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use prometheus::{IntCounterVec, IntGauge, Opts, Registry};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::time::Instant;
use transport::{DialError, Duplex};

use super::failure::Failure;

/// Headers of an answer must fit, together with the beginning of the body.
const HEADERS_MAX: usize = 16 * 1024;
/// The longest answer of a probe that is read.
pub(crate) const BODY_MAX: usize = 64 * 1024;

type Wire = Connection<TokioIo<Box<dyn Duplex>>, Empty<Bytes>>;

/// An open connection.
pub(crate) struct Link {
    state: LinkState,
    /// The address, by its number among those of the client.
    pub(crate) endpoint: u8,
    /// When it is too old to be used again.
    expires: Instant,
    used: Instant,
    /// Lifetime of the server's certificate.
    pub(crate) certificate: Option<Lifetime>,
    _counted: Open,
}

enum LinkState {
    /// Between probes. The next one sets up HTTP again: its buffers and queues take 17 KiB.
    AtRest(Box<dyn Duplex>),
    Http(Http),
    /// Closed, or of no more use.
    Ended,
}

struct Http {
    send: SendRequest<Empty<Bytes>>,
    /// `None` once it has ended.
    wire: Option<Box<Wire>>,
}

/// The beginning of an answer.
pub(crate) type Head = Response<Incoming>;

/// Result of reading the body of an answer.
pub(crate) enum Body {
    /// All of it.
    Whole(Vec<u8>),
    /// Longer than what was asked for; the connection is of no more use.
    TooLong,
}

impl Link {
    /// Speaks HTTP over `stream`.
    pub(crate) fn new(
        stream: Box<dyn Duplex>,
        endpoint: u8,
        max_age: Duration,
        certificate: Option<Lifetime>,
        counted: Open,
    ) -> Self {
        let (state, used) = (LinkState::AtRest(stream), Instant::now());
        let expires = used + max_age;
        Self { state, endpoint, expires, used, certificate, _counted: counted }
    }

    /// Whether it is good for another probe: young enough, used of late, and not closed.
    pub(crate) fn is_usable(&mut self, idle_max: Duration) -> bool {
        let now = Instant::now();
        let young = now < self.expires && now.saturating_duration_since(self.used) < idle_max;
        young && self.is_open()
    }

    /// Whether the server has not closed it.
    pub(crate) fn is_open(&mut self) -> bool {
        // What the server did meanwhile has left word in the socket.
        let mut context = Context::from_waker(std::task::Waker::noop());
        match &mut self.state {
            LinkState::AtRest(stream) => {
                // An end, an error, or bytes that answer no request.
                let mut byte = [0];
                let read = Pin::new(stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte));
                if read.is_ready() {
                    self.state = LinkState::Ended;
                }
                read.is_pending()
            }
            LinkState::Http(http) => {
                poll_wire(&mut http.wire, &mut context);
                http.wire.is_some() && !http.send.is_closed()
            }
            LinkState::Ended => false,
        }
    }

    /// The connection without HTTP until the next probe; `None` when it is of no more use.
    pub(crate) fn at_rest(mut self, idle_max: Duration) -> Option<Self> {
        if !self.is_usable(idle_max) {
            return None;
        }
        self.state = match replace(&mut self.state, LinkState::Ended) {
            LinkState::Http(Http { send, wire }) => {
                // Not ready: an exchange has not ended. More bytes than the answer: they answer nothing.
                let parts = wire.filter(|_| send.is_ready())?.into_parts();
                if !parts.read_buf.is_empty() {
                    return None;
                }
                LinkState::AtRest(parts.io.into_inner())
            }
            other => other,
        };
        Some(self)
    }

    #[cfg(test)]
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.state, LinkState::AtRest(_))
    }

    /// Sends `request` and waits for the head of the answer.
    pub(crate) async fn send(&mut self, request: Request<Empty<Bytes>>) -> Result<Head, Failure> {
        let failed = |error: hyper::Error| Failure::of_http(&error);
        let Http { send, wire } = self.http().await?;
        driving(wire, poll_fn(|context| send.poll_ready(context))).await.map_err(failed)?;
        let answer = driving(wire, send.send_request(request)).await.map_err(failed)?;
        self.used = Instant::now();
        Ok(answer)
    }

    /// HTTP over its stream. Setting it up sends nothing.
    async fn http(&mut self) -> Result<&mut Http, Failure> {
        self.state = match replace(&mut self.state, LinkState::Ended) {
            LinkState::AtRest(stream) => {
                let mut http = Builder::new();
                // Grows from 8 KiB. An exact size of reads would be the limit of the headers as well.
                http.max_buf_size(HEADERS_MAX);
                let begun = http.handshake(TokioIo::new(stream)).await;
                let (send, wire) = begun.map_err(|error| Failure::of_http(&error))?;
                LinkState::Http(Http { send, wire: Some(Box::new(wire)) })
            }
            other => other,
        };
        match &mut self.state {
            LinkState::Http(http) => Ok(http),
            LinkState::AtRest(_) | LinkState::Ended => {
                let detail = "the connection was closed: before the answer".to_owned();
                Err(Failure { code: Code::Reset, detail })
            }
        }
    }

    /// Reads the body of `head` to its end, if it has at most `most` bytes.
    pub(crate) async fn read(&mut self, head: Head, most: usize) -> Result<Body, Failure> {
        let mut text = Vec::new();
        let mut take = |bytes: &[u8]| {
            text.extend_from_slice(bytes);
            true
        };
        let is_whole = self.read_in_pieces(head, most, &mut take).await?;
        Ok(if is_whole { Body::Whole(text) } else { Body::TooLong })
    }

    /// Hands the body of `head` to `take`, piece by piece; whether it came to its end, with at most
    /// `most` bytes and while `take` returned true.
    pub(crate) async fn read_in_pieces(
        &mut self,
        head: Head,
        most: usize,
        take: &mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> Result<bool, Failure> {
        let (mut body, mut left) = (head.into_body(), most);
        let LinkState::Http(Http { wire, .. }) = &mut self.state else { return Ok(false) };
        while let Some(frame) = driving(wire, body.frame()).await {
            let frame = frame.map_err(|error| Failure::of_http(&error))?;
            let Some(data) = frame.data_ref() else { continue };
            let Some(rest) = left.checked_sub(data.len()) else { return Ok(false) };
            left = rest;
            if !take(data) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Awaits `work`, which needs the connection to go on.
async fn driving<F: Future>(wire: &mut Option<Box<Wire>>, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|context| {
        poll_wire(wire, context);
        work.as_mut().poll(context)
    })
    .await
}

/// Drives the connection. The request in flight gets the error with which it ends, too.
fn poll_wire(wire: &mut Option<Box<Wire>>, context: &mut Context<'_>) {
    if wire.as_mut().is_some_and(|wire| Pin::new(&mut **wire).poll(context).is_ready()) {
        *wire = None;
    }
}

/// How long a connection may be used.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// A connection is replaced after this, give or take a tenth; zero for one probe only
    pub max_age: Duration,
    /// A connection that carried nothing for this long is not used again.
    pub idle_max: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(300), idle_max: Duration::from_secs(90) }
    }
}

/// Counts the connections of all clients.
#[derive(Clone, Debug)]
pub struct Meters {
    connections: IntGauge,
    handshakes: IntCounterVec,
}

impl Meters {
    /// Registers the metrics of connections with `registry`.
    ///
    /// # Errors
    /// It has metrics of these names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let connections = IntGauge::new(
            "clusterhealth_connections",
            "Connections to member clusters that are open.",
        )?;
        let handshakes = IntCounterVec::new(
            Opts::new(
                "clusterhealth_tls_handshakes_total",
                "Attempts to open a connection to a member cluster, by result; own-limit: this process can open no more connections.",
            ),
            &["outcome"],
        )?;
        registry.register(Box::new(connections.clone()))?;
        registry.register(Box::new(handshakes.clone()))?;
        Ok(Self { connections, handshakes })
    }

    pub(crate) fn handshake<T>(&self, dialed: &Result<T, DialError>) {
        let outcome = match dialed {
            Ok(_) => "ok",
            Err(DialError::OwnLimit(_)) => "own-limit",
            Err(_) => "error",
        };
        self.handshakes.with_label_values(&[outcome]).inc();
    }

    pub(crate) fn open(&self) -> Open {
        self.connections.inc();
        Open(self.connections.clone())
    }
}

/// Counts as an open connection for as long as it lives.
pub(crate) struct Open(IntGauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
