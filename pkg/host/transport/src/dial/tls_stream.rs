//! [`TlsStream`]: TLS over a stream, without buffers while nothing is on its way. A connection of the
//! library keeps 4 KiB for what it reads next, which with thousands of connections at rest is a fifth of
//! the memory of the process.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, WriteTraffic};
use rustls::{ClientConfig, InvalidMessage};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at once.
const READ: usize = 4096;
/// Bytes of plaintext in one record.
const PLAIN_MAX: usize = 16 * 1024;
/// Bytes of a record in addition to its plaintext.
const OVERHEAD: usize = 256;
/// Bytes that may wait for the rest of their record or handshake message.
const WAITING_MAX: usize = 64 * 1024;

/// A client's end of a connection.
pub(super) struct TlsStream<S> {
    stream: S,
    tls: UnbufferedClientConnection,
    /// Received, and not decrypted yet.
    incoming: Vec<u8>,
    /// Decrypted, and not read yet.
    plain: Vec<u8>,
    /// Encrypted, and not sent yet.
    outgoing: Vec<u8>,
    /// The server has said that it sends nothing more.
    is_closed: bool,
    /// So have we.
    is_shut: bool,
    /// The server sent what is no TLS. The library must not get more of it.
    is_broken: bool,
}

/// What the connection can do next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Bytes of the server are needed.
    Handshake,
    /// Data may be sent and received.
    Traffic,
    /// Nothing comes any more.
    Closed,
}

/// Content of a record.
#[derive(Clone, Copy)]
enum Record<'a> {
    Data(&'a [u8]),
    /// The alert that nothing more is sent.
    Closing,
}

impl Record<'_> {
    fn encrypt(
        self,
        traffic: &mut WriteTraffic<'_, ClientConnectionData>,
        space: &mut [u8],
    ) -> Result<usize, EncryptError> {
        match self {
            Self::Data(data) => traffic.encrypt(data, space),
            Self::Closing => traffic.queue_close_notify(space),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Makes the handshake with the server of this `name`.
    ///
    /// # Errors
    /// Of the stream; of kind `InvalidData` when the server's part of the handshake is refused.
    pub(super) async fn connect(
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
        stream: S,
    ) -> io::Result<Self> {
        let tls = UnbufferedClientConnection::new(Arc::clone(config), name).map_err(invalid)?;
        let (incoming, plain, outgoing) = (Vec::new(), Vec::new(), Vec::new());
        let (is_closed, is_shut, is_broken) = (false, false, false);
        let mut made =
            Self { stream, tls, incoming, plain, outgoing, is_closed, is_shut, is_broken };
        poll_fn(|context| made.poll_handshake(context)).await?;
        Ok(made)
    }

    /// The certificates that the server showed, its own first.
    pub(super) fn certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }

    /// An alert that is here already; other bytes stay to be read.
    pub(super) fn poll_alert(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        match self.poll_incoming(context) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Poll::Ready(error)
            }
            Poll::Ready(_) | Poll::Pending => Poll::Pending,
        }
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let next = self.process(context)?;
            ready!(self.poll_send(context))?;
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            match next {
                Next::Traffic => return Poll::Ready(Ok(())),
                Next::Closed => return Poll::Ready(Err(cut_off("during the handshake"))),
                Next::Handshake if ready!(self.poll_receive(context))? == 0 => {
                    return Poll::Ready(Err(cut_off("during the handshake")));
                }
                Next::Handshake => {}
            }
        }
    }

    /// Takes in what was received. An error of the server is answered by an alert, if that can be sent
    /// at once.
    fn process(&mut self, context: &mut Context<'_>) -> io::Result<Next> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let next = self.step();
        if next.is_err() {
            self.is_broken = true;
            self.encode_alert();
            let _sent = self.poll_send(context);
        }
        if self.incoming.is_empty() {
            self.incoming = Vec::new();
        }
        next.map_err(invalid)
    }

    fn step(&mut self) -> Result<Next, rustls::Error> {
        let Self { tls, incoming, plain, outgoing, is_closed, .. } = self;
        loop {
            let status = tls.process_tls_records(incoming);
            let discard = status.discard;
            let next = match status.state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        plain.extend_from_slice(record?.payload);
                    }
                    None
                }
                Ok(ConnectionState::EncodeTlsData(message)) => {
                    encode(message, outgoing)?;
                    None
                }
                // It is in a buffer of ours, in its order.
                Ok(ConnectionState::TransmitTlsData(sent)) => {
                    sent.done();
                    None
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    *is_closed = true;
                    Some(Next::Closed)
                }
                Ok(ConnectionState::WriteTraffic(_)) => Some(Next::Traffic),
                Ok(_) => Some(Next::Handshake),
                Err(error) => {
                    incoming.drain(..discard);
                    return Err(error);
                }
            };
            incoming.drain(..discard);
            if let Some(next) = next {
                return Ok(if *is_closed { Next::Closed } else { next });
            }
        }
    }

    /// Encrypts the alert that is due after an error, if there is one. It comes before the library looks
    /// at what was received, which it must not see again.
    fn encode_alert(&mut self) {
        let Self { tls, incoming, outgoing, .. } = self;
        loop {
            let status = tls.process_tls_records(incoming);
            let discard = status.discard;
            match status.state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while traffic.next_record().is_some() {}
                }
                Ok(ConnectionState::EncodeTlsData(message)) => {
                    // Without it the server sees that the connection ends.
                    let _encoded = encode(message, outgoing);
                    return;
                }
                _ => return,
            }
            incoming.drain(..discard);
        }
    }

    /// Sends what is encrypted.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let stream = Pin::new(&mut self.stream);
            let sent = ready!(stream.poll_write(context, &self.outgoing))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.drain(..sent);
        }
        self.outgoing = Vec::new();
        Poll::Ready(Ok(()))
    }

    /// Receives bytes; zero at the end of the stream.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.incoming.len() >= WAITING_MAX {
            let error = rustls::Error::InvalidMessage(InvalidMessage::MessageTooLarge);
            return Poll::Ready(Err(invalid(error)));
        }
        // On the stack: while nothing comes it takes no memory.
        let mut space = [0; READ];
        let mut read = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        self.incoming.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Waits until something is decrypted, or nothing comes any more.
    fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.plain.is_empty() && !self.is_closed {
            if self.is_broken {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if ready!(self.poll_receive(context))? == 0 {
                return Poll::Ready(Err(cut_off("without a closing alert")));
            }
            self.process(context)?;
            // An answer to the server, for which what comes next does not wait. rustls keeps one at a time, so they are few.
            if let Poll::Ready(sent) = self.poll_send(context) {
                sent?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Encrypts a record; false when the connection takes none.
    fn write_record(&mut self, record: Record<'_>) -> Result<bool, rustls::Error> {
        let Self { tls, incoming, outgoing, .. } = self;
        let status = tls.process_tls_records(incoming);
        let discard = status.discard;
        let is_writable = match status.state? {
            ConnectionState::WriteTraffic(mut traffic) => {
                append(outgoing, |space| match record.encrypt(&mut traffic, space) {
                    Ok(written) => Ok(written),
                    Err(EncryptError::InsufficientSize(error)) => Err(Some(error.required_size)),
                    Err(EncryptError::EncryptExhausted) => Err(None),
                })?;
                true
            }
            _ => false,
        };
        incoming.drain(..discard);
        Ok(is_writable)
    }
}

fn encode(
    mut message: EncodeTlsData<'_, ClientConnectionData>,
    outgoing: &mut Vec<u8>,
) -> Result<(), rustls::Error> {
    append(outgoing, |space| match message.encode(space) {
        Ok(written) => Ok(written),
        Err(EncodeError::InsufficientSize(error)) => Err(Some(error.required_size)),
        Err(EncodeError::AlreadyEncoded) => Err(None),
    })
}

/// Appends to `buffer` what `write` writes into the space behind it, or says how much space it needs.
fn append(
    buffer: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), rustls::Error> {
    let (begin, mut space) = (buffer.len(), OVERHEAD);
    loop {
        buffer.resize(begin + space, 0);
        let written = write(&mut buffer[begin..]);
        buffer.truncate(begin + written.unwrap_or_default());
        match written {
            Ok(_) => return Ok(()),
            Err(Some(needed)) if needed > space => space = needed,
            Err(_) => return Err(rustls::Error::EncryptError),
        }
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn cut_off(when: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the server closed the connection {when}"))
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_incoming(context))?;
        let taken = self.plain.len().min(into.remaining());
        into.put_slice(&self.plain[..taken]);
        if taken == self.plain.len() {
            self.plain = Vec::new();
        } else {
            self.plain.drain(..taken);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        // What was taken before goes first, so that at most one record waits here.
        ready!(self.poll_send(context))?;
        let next = self.process(context)?;
        if next == Next::Handshake {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        let data = &data[..data.len().min(PLAIN_MAX)];
        let is_taken = self.write_record(Record::Data(data));
        if !is_taken.map_err(invalid)? {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if let Poll::Ready(Err(error)) = self.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.is_shut, true) && !self.is_broken {
            self.write_record(Record::Closing).map_err(invalid)?;
        }
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
