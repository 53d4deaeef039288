//! [`Channel`]: one HTTP/2 connection, on which requests run side by side.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Reason, SendStream};
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tower::BoxError;

use crate::wire::exchange::{AnswerBody, WireError};
use crate::wire::keep_alive::{Heard, Load, until_silent};
use crate::wire::pending_sends::{GatedIo, PendingSends, SendPermit};

/// Unread bytes of one answer that the server may send: enough for a large list to stream.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;
/// Unread bytes of all answers: one that is not read for a while must not stop the others.
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;
/// Before the server tells how many it takes; a stream above its limit would be refused.
const STREAMS_AT_FIRST: usize = 1;
/// Answers of the API server have some 500 bytes of headers; gateways add cookies and policies.
const MAX_HEADERS: u32 = 64 * 1024;
/// Requests that were given up and whose last frames may still be on their way: more than all
/// workers of a process give up together.
const FORGOTTEN_STREAMS: usize = 1024;
/// Bytes of one request's body that wait for the server to take them.
const SEND_BUFFER: usize = 1024 * 1024;

/// A connection; it ends when it is dropped and the last answer has been read.
pub(super) struct Channel {
    requests: Mutex<SendRequest<Bytes>>,
    heard: Arc<Heard>,
    load: Load,
    pending: Arc<PendingSends>,
    /// Tells a parked connection that no handle is left to send on.
    _open: mpsc::Sender<Infallible>,
}

/// The right to send the next request.
pub(super) type Turn<'a> = MutexGuard<'a, SendRequest<Bytes>>;

impl Channel {
    /// Speaks HTTP/2 on `io` from now on, on the current runtime. Its requests count in `load`.
    pub(super) async fn open<T>(io: T, load: Load) -> Result<Self, h2::Error>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .max_header_list_size(MAX_HEADERS)
            .max_send_buffer_size(SEND_BUFFER)
            .max_concurrent_reset_streams(FORGOTTEN_STREAMS)
            .enable_push(false);
        let pending = Arc::new(PendingSends::default());
        let io = GatedIo::new(io, Arc::clone(&pending));
        let (requests, mut connection) = builder.handshake(io).await?;
        let heard = Arc::new(Heard::now());
        let (open, closed) = mpsc::channel(1);
        let pings = connection.ping_pong();
        let watched = Arc::clone(&heard);
        let silent = async move {
            match pings {
                Some(pings) => until_silent(pings, &watched).await,
                None => std::future::pending().await,
            }
        };
        let moves = Arc::clone(&pending);
        tokio::spawn(Driver::new(connection, moves, Box::pin(silent), closed));
        Ok(Self { requests: Mutex::new(requests), heard, load, pending, _open: open })
    }

    /// Waits until the server takes another request.
    ///
    /// # Errors
    /// The connection has ended, or takes no more requests.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, h2::Error> {
        let mut turn = self.requests.lock().await;
        poll_fn(|cx| turn.poll_ready(cx)).await?;
        Ok(turn)
    }

    /// Sends a request, whose body is asked for when the connection has room for it.
    pub(super) async fn send<B>(
        &self,
        mut turn: Turn<'_>,
        request: Request<B>,
    ) -> Result<Response<AnswerBody>, WireError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (mut head, body) = request.into_parts();
        let ends = body.is_end_stream();
        if let Some(length) = body.size_hint().exact().filter(|_| !ends) {
            head.headers.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
        }
        let permit = head.extensions.remove::<SendPermit>();
        head.extensions.clear();
        let request = Request::from_parts(head, ());
        let waiting = self.load.begin();
        let sent = turn.send_request(request, ends);
        let (answer, stream) = sent.map_err(WireError::unprocessed)?;
        Opening { turn, is_over: false }.wait().await;
        if !ends {
            let mut leaving = Leaving { stream, permit, pending: &self.pending };
            leaving.send(pin!(body)).await?;
        }
        let answer = answer.await.map_err(WireError::of_stream)?;
        drop(waiting);
        self.heard.note();
        Ok(answer.map(|body| AnswerBody::of_stream(body, Arc::clone(&self.heard))))
    }
}

/// A request that waits until the server allows its stream; its body stays here meanwhile.
struct Opening<'a> {
    turn: Turn<'a>,
    is_over: bool,
}

impl Opening<'_> {
    /// Hands on the turn. A connection that has ended tells so by the stream itself.
    async fn wait(mut self) {
        let _ended = poll_fn(|cx| self.turn.poll_ready(cx)).await;
        self.is_over = true;
    }
}

impl Drop for Opening<'_> {
    /// The turn holds on to a stream that waits, and would send what was given up; a new handle
    /// does not.
    fn drop(&mut self) {
        if !self.is_over {
            *self.turn = self.turn.clone();
        }
    }
}

/// The body of a request on its way out.
struct Leaving<'a> {
    stream: SendStream<Bytes>,
    permit: Option<SendPermit>,
    pending: &'a PendingSends,
}

impl Leaving<'_> {
    /// Sends all of a body. A server that wants no more of it has answered, or the answer says what
    /// broke.
    async fn send<B>(&mut self, mut body: Pin<&mut B>) -> Result<(), WireError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        while self.room_for(1).await.is_some() {
            let (data, last) = match body.frame().await {
                Some(Ok(frame)) => (frame.into_data().unwrap_or_default(), body.is_end_stream()),
                Some(Err(error)) => {
                    self.stream.send_reset(Reason::CANCEL);
                    return Err(WireError::broken(error));
                }
                None => (Bytes::new(), true),
            };
            if !self.send_part(data, last).await {
                break;
            }
        }
        Ok(())
    }

    /// Sends a part of a body, never more at once than the server takes: the rest would wait in the
    /// connection, where its permit is not asked. Returns whether more is wanted.
    async fn send_part(&mut self, mut data: Bytes, last: bool) -> bool {
        loop {
            let wanted = data.len();
            let room = if wanted == 0 { Some(0) } else { self.room_for(wanted).await };
            let Some(room) = room else { return false };
            let piece = data.split_to(room.min(wanted));
            let ends = last && data.is_empty();
            let stream = &mut self.stream;
            let give = || stream.send_data(piece, ends);
            if self.pending.give(self.permit.as_ref(), give).is_err() || ends {
                return false;
            }
            if data.is_empty() {
                return true;
            }
        }
    }

    /// Waits until the server takes some of so many bytes, and says how many; `None` when it never
    /// will.
    async fn room_for(&mut self, bytes: usize) -> Option<usize> {
        self.stream.reserve_capacity(bytes);
        while self.stream.capacity() == 0 {
            poll_fn(|cx| self.stream.poll_capacity(cx)).await?.ok()?;
        }
        Some(self.stream.capacity())
    }
}

/// Moves the bytes of a connection until it ends, the server falls silent, or no handle is left.
pub(super) struct Driver<T> {
    connection: Connection<GatedIo<T>, Bytes>,
    pending: Arc<PendingSends>,
    silent: BoxFuture<'static, ()>,
    closed: mpsc::Receiver<Infallible>,
    /// The driver was woken and lets the tasks that were woken with it run first.
    gathering: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    /// `silent` ends when the server is given up, `closed` when no handle is left.
    pub(super) fn new(
        connection: Connection<GatedIo<T>, Bytes>,
        pending: Arc<PendingSends>,
        silent: BoxFuture<'static, ()>,
        closed: mpsc::Receiver<Infallible>,
    ) -> Self {
        Self { connection, pending, silent, closed, gathering: false }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Future for Driver<T> {
    type Output = ();

    /// Every other call moves bytes; the one before lets all tasks run that are ready, so their requests
    /// leave in a few writes instead of a system call each.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.gathering = !self.gathering;
        if self.gathering {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // That the channel was dropped needs no more than this look at the connection.
        let _closed = self.closed.poll_recv(cx);
        self.pending.begin();
        let ended = Pin::new(&mut self.connection).poll(cx).is_ready();
        if self.pending.end() {
            cx.waker().wake_by_ref();
        }
        if ended || self.silent.as_mut().poll(cx).is_ready() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests;
