//! A connection that can stand still: the kernel still takes bytes, but no process reads or answers.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// The switch for all connections of a proxy.
#[derive(Default)]
pub(super) struct Freezer(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    frozen: bool,
    waiting: Vec<Waker>,
}

impl Freezer {
    pub(super) fn set(&self, frozen: bool) {
        let mut inner = self.0.lock();
        inner.frozen = frozen;
        if !frozen {
            inner.waiting.drain(..).for_each(Waker::wake);
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock();
        if !inner.frozen {
            return Poll::Ready(());
        }
        if !inner.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            inner.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// A TCP connection under the switch.
pub(super) struct Freezable {
    pub(super) stream: TcpStream,
    pub(super) freezer: Arc<Freezer>,
    pub(super) cut: CancellationToken,
}

impl Drop for Freezable {
    fn drop(&mut self) {
        // A connection that was cut ends with RST, as those of a crashed server do.
        if self.cut.is_cancelled()
            && let Err(error) = self.stream.set_zero_linger()
        {
            eprintln!("cannot make a connection end with RST: {error}");
        }
    }
}

impl AsyncRead for Freezable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        std::task::ready!(self.freezer.poll(context));
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Freezable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        std::task::ready!(self.freezer.poll(context));
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.freezer.poll(context));
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.freezer.poll(context));
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
