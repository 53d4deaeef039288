//! [`Pipe`]: our end of a connection in memory, which tells what is done to it.

use super::*;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

type Callback = Box<dyn Fn() + Send>;

pub(super) struct Pipe {
    io: DuplexStream,
    written: Callback,
    flushed: Callback,
}

impl Pipe {
    pub(super) fn new(io: DuplexStream) -> Self {
        Self { io, written: Box::new(|| ()), flushed: Box::new(|| ()) }
    }

    /// Calls `told` whenever bytes are about to be written.
    pub(super) fn on_write(self, told: impl Fn() + Send + 'static) -> Self {
        Self { written: Box::new(told), ..self }
    }

    /// Calls `told` whenever it is about to be flushed.
    pub(super) fn on_flush(self, told: impl Fn() + Send + 'static) -> Self {
        Self { flushed: Box::new(told), ..self }
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        (self.written)();
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        (self.flushed)();
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
