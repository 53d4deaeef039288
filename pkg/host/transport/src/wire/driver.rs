//! [`Driver`]: the task that moves the bytes of one HTTP/2 connection. Started by `channel`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use h2::client::Connection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::departures::{AskedIo, Departures};

/// Moves the bytes of a connection until it ends, the server falls silent, or nobody needs it.
pub(super) struct Driver<T> {
    connection: Connection<AskedIo<T>, Bytes>,
    departures: Arc<Departures>,
    silent: BoxFuture<'static, ()>,
    closed: mpsc::Receiver<Infallible>,
    /// It has been woken and waits for those who were woken with it.
    gathering: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    /// `silent` ends when the server is given up, `closed` when nobody can send any more.
    pub(super) fn new(
        connection: Connection<AskedIo<T>, Bytes>,
        departures: Arc<Departures>,
        silent: BoxFuture<'static, ()>,
        closed: mpsc::Receiver<Infallible>,
    ) -> Self {
        Self { connection, departures, silent, closed, gathering: false }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Future for Driver<T> {
    type Output = ();

    /// Every other call moves bytes; the one before lets all tasks run that are ready
    /// (`rule:ready-requests-leave-together`).
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.gathering = !self.gathering;
        if self.gathering {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // That the channel was dropped needs no more than this look at the connection.
        let _closed = self.closed.poll_recv(cx);
        self.departures.begin();
        let ended = Pin::new(&mut self.connection).poll(cx).is_ready();
        if self.departures.end() {
            cx.waker().wake_by_ref();
        }
        if ended || self.silent.as_mut().poll(cx).is_ready() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
