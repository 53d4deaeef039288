//! [`PendingSends`]: the writes whose bytes may still lie in this process. [`GatedIo`] asks the permit of
//! each of them before it sends bytes (`rule:held-up-writes-are-asked-again`). Used by
//! `channel` and `driver`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The permit of a write, an extension of its request. Asked often, from any thread.
#[derive(Clone)]
pub struct SendPermit(Arc<dyn Fn() -> bool + Send + Sync>);

impl SendPermit {
    /// A permit that calls `ask` each time.
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// Whether the write may be sent now.
    pub fn ask(&self) -> bool {
        (self.0)()
    }
}

/// The writes of one connection whose bytes it has not certainly handed to the kernel.
#[derive(Default)]
pub(super) struct PendingSends(Mutex<Held>);

#[derive(Default)]
struct Held {
    writes: Vec<PendingSend>,
    /// The kernel has all bytes that came down so far.
    is_flushed: bool,
}

struct PendingSend {
    write: SendPermit,
    stage: Stage,
}

/// How far the bytes of a write are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The bytes are being given to the connection.
    Giving,
    /// The connection has the bytes.
    Given,
    /// The connection had the bytes when it began to send.
    Moving,
}

impl PendingSends {
    /// Gives bytes of a write to the connection.
    pub(super) fn give<T>(&self, write: Option<&SendPermit>, give: impl FnOnce() -> T) -> T {
        let Some(write) = write else { return give() };
        self.0.lock().writes.push(PendingSend { write: write.clone(), stage: Stage::Giving });
        let given = give();
        let is_it =
            |it: &&mut PendingSend| it.stage == Stage::Giving && Arc::ptr_eq(&it.write.0, &write.0);
        if let Some(send) = self.0.lock().writes.iter_mut().rev().find(is_it) {
            send.stage = Stage::Given;
        }
        given
    }

    /// The connection begins to move what it was given.
    pub(super) fn begin(&self) {
        let mut held = self.0.lock();
        for send in held.writes.iter_mut().filter(|it| it.stage == Stage::Given) {
            send.stage = Stage::Moving;
        }
    }

    /// The connection has moved what it could. True if it is to look again at once: bytes that it
    /// was given meanwhile may have been sent too, and needs no permit any more.
    #[must_use]
    pub(super) fn end(&self) -> bool {
        let held = &mut *self.0.lock();
        if held.is_flushed {
            held.writes.retain(|send| send.stage != Stage::Moving);
        }
        held.is_flushed && !held.writes.is_empty()
    }

    /// Asked before bytes go: whether all of the writes may.
    fn ask(&self) -> io::Result<()> {
        let mut held = self.0.lock();
        held.is_flushed = false;
        let permit = held.writes.iter().all(|send| send.write.ask());
        if permit { Ok(()) } else { Err(io::Error::other(Cancelled)) }
    }

    /// One flush is not the end: a connection makes several while it moves what it was given.
    fn flushed(&self) {
        self.0.lock().is_flushed = true;
    }
}

#[derive(Debug, thiserror::Error)]
#[error("write cancelled: its timeout or the leader lease expired before it was sent")]
struct Cancelled;

/// A connection whose bytes leave only while every write among them may.
pub(super) struct GatedIo<T> {
    io: T,
    pending: Arc<PendingSends>,
}

impl<T> GatedIo<T> {
    pub(super) fn new(io: T, pending: Arc<PendingSends>) -> Self {
        Self { io, pending }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for GatedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for GatedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pending.ask()?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.pending.ask()?;
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// TLS may have kept what the kernel did not take.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pending.ask()?;
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.pending.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pending.ask()?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_while_bytes_moved_is_looked_at_again_and_then_forgotten() {
        let (pending, write) = (PendingSends::default(), SendPermit::new(|| true));
        pending.begin();
        pending.give(Some(&write), || ());
        pending.flushed();
        assert!(pending.end(), "it may have left");
        pending.begin();
        assert!(pending.ask().is_ok());
        assert!(!pending.end(), "the kernel has not taken everything");
        pending.flushed();
        assert!(!pending.end());
        assert!(pending.0.lock().writes.is_empty());
    }

    #[test]
    fn what_is_not_given_yet_when_bytes_begin_to_move_is_asked_about_until_it_is() {
        let (pending, write) = (PendingSends::default(), SendPermit::new(|| false));
        pending.give(Some(&write), || {
            pending.begin();
            pending.flushed();
            assert!(pending.end());
        });
        assert!(pending.ask().is_err());
    }
}
