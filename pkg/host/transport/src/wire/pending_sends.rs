//! [`Departures`]: the writes whose bytes may still lie in this process, and [`AskedIo`], which asks
//! for each of them before it lets bytes go (`rule:held-up-writes-are-asked-again`). Used by
//! `channel` and `driver`.

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

    /// What it says now.
    pub fn ask(&self) -> bool {
        (self.0)()
    }
}

/// The writes of one connection whose bytes it has not certainly handed to the kernel.
#[derive(Default)]
pub(super) struct Departures(Mutex<Held>);

#[derive(Default)]
struct Held {
    writes: Vec<Departure>,
    /// The kernel has all bytes that came down so far.
    is_flushed: bool,
}

struct Departure {
    write: MayLeave,
    stage: Stage,
}

/// How far the bytes of a write are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// They are being given to the connection.
    Giving,
    /// The connection has them.
    Given,
    /// The connection had them when it began to move bytes.
    Moving,
}

impl Departures {
    /// Gives bytes of a write to the connection.
    pub(super) fn give<T>(&self, write: Option<&MayLeave>, give: impl FnOnce() -> T) -> T {
        let Some(write) = write else { return give() };
        self.0.lock().writes.push(Departure { write: write.clone(), stage: Stage::Giving });
        let given = give();
        let is_it =
            |it: &&mut Departure| it.stage == Stage::Giving && Arc::ptr_eq(&it.write.0, &write.0);
        if let Some(departure) = self.0.lock().writes.iter_mut().rev().find(is_it) {
            departure.stage = Stage::Given;
        }
        given
    }

    /// The connection begins to move what it was given.
    pub(super) fn begin(&self) {
        let mut held = self.0.lock();
        for departure in held.writes.iter_mut().filter(|it| it.stage == Stage::Given) {
            departure.stage = Stage::Moving;
        }
    }

    /// The connection has moved what it could. True if it is to look again at once: bytes that it
    /// was given meanwhile may have left too, and nobody is to be asked about those again.
    #[must_use]
    pub(super) fn end(&self) -> bool {
        let held = &mut *self.0.lock();
        if held.is_flushed {
            held.writes.retain(|departure| departure.stage != Stage::Moving);
        }
        held.is_flushed && !held.writes.is_empty()
    }

    /// Asked before bytes go: whether all of the writes may.
    fn ask(&self) -> io::Result<()> {
        let mut held = self.0.lock();
        held.is_flushed = false;
        let may_leave = held.writes.iter().all(|departure| departure.write.ask());
        if may_leave { Ok(()) } else { Err(io::Error::other(HeldUp)) }
    }

    /// One flush is not the end: a connection makes several while it moves what it was given.
    fn flushed(&self) {
        self.0.lock().is_flushed = true;
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
        self.departures.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.departures.ask()?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_while_bytes_moved_is_looked_at_again_and_then_forgotten() {
        let (departures, write) = (Departures::default(), MayLeave::new(|| true));
        departures.begin();
        departures.give(Some(&write), || ());
        departures.flushed();
        assert!(departures.end(), "it may have left");
        departures.begin();
        assert!(departures.ask().is_ok());
        assert!(!departures.end(), "the kernel has not taken everything");
        departures.flushed();
        assert!(!departures.end());
        assert!(departures.0.lock().writes.is_empty());
    }

    #[test]
    fn what_is_not_given_yet_when_bytes_begin_to_move_is_asked_about_until_it_is() {
        let (departures, write) = (Departures::default(), MayLeave::new(|| false));
        departures.give(Some(&write), || {
            departures.begin();
            departures.flushed();
            assert!(departures.end());
        });
        assert!(departures.ask().is_err());
    }
}
