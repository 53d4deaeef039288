//! [`Departures`]: the writes whose bytes may still lie in this process, and [`AskedIo`], which asks
//! for each of them before it lets bytes go (`rule:held-up-writes-are-asked-again`). Used by
//! `channel`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Whether a write may still leave; an extension of its request. Asked often, from any thread.
#[derive(Clone)]
pub struct MayLeave(Arc<dyn Fn() -> bool + Send + Sync>);

impl MayLeave {
    /// As `ask` says at each moment.
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

/// The writes of one connection whose bytes it has not certainly handed to the kernel.
#[derive(Default)]
pub(super) struct Departures(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    /// Given since bytes were last moved.
    given: Vec<MayLeave>,
    /// Given before that: gone when all bytes are.
    moving: Vec<MayLeave>,
}

impl Departures {
    /// Bytes of this write were given to the connection, or are about to be.
    pub(super) fn add(&self, write: &MayLeave) {
        self.0.lock().given.push(write.clone());
    }

    /// The connection begins to move what it was given.
    pub(super) fn begin(&self) {
        let lists = &mut *self.0.lock();
        lists.moving.append(&mut lists.given);
    }

    fn ask(&self) -> io::Result<()> {
        let lists = self.0.lock();
        let mut all = lists.given.iter().chain(&lists.moving);
        if all.all(|write| (write.0)()) { Ok(()) } else { Err(io::Error::other(HeldUp)) }
    }

    fn all_moved(&self) {
        self.0.lock().moving.clear();
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a write was held up in this process until it was not allowed any more")]
struct HeldUp;

/// A connection whose bytes leave only while every write among them may.
pub(super) struct AskedIo<T> {
    io: T,
    departures: Arc<Departures>,
}

impl<T> AskedIo<T> {
    pub(super) fn new(io: T, departures: Arc<Departures>) -> Self {
        Self { io, departures }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for AskedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for AskedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.departures.ask()?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.departures.ask()?;
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// TLS may have kept what the kernel did not take.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.departures.ask()?;
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.departures.all_moved();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.departures.ask()?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
