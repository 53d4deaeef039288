//! Answers of the API server: an open watch read message by message, a page read whole. [`Splitter`]
//! cuts a body that arrives in frames into messages, without a copy of one that lies in one frame:
//! lines for JSON; for protobuf a length of four bytes, highest first, before each message.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube_api::Status;
use memchr::memchr;
use tokio::time::{Instant, timeout, timeout_at};
use transport::{RETRY_AFTER_MAX, retry_after};

use crate::decode;
use crate::fault::Fault;
use crate::intake::MessageHead;
use crate::request::Encoding;

/// Longest wait for the headers of an answer. A server in trouble often takes the request and
/// never answers.
const OPENING: Duration = Duration::from_secs(30);
/// Longest wait for one page of 500 objects, all of it; the server's own limit for a list.
const PAGE: Duration = Duration::from_secs(60);
/// A server whose clock or timer is a little late ends a watch after our own time.
const GRACE: Duration = Duration::from_secs(10);

/// Longest page of several objects. A longer page is requested again with half of the objects.
pub(crate) const LONGEST_PAGE: usize = 16 << 20;
/// The text of a refusal.
pub(crate) const LONGEST_REFUSAL: usize = 1 << 20;

/// An open watch.
pub(crate) struct Stream {
    body: Body,
    encoding: Encoding,
    messages: Splitter,
    opened: Instant,
    ends: Instant,
}

impl Stream {
    /// Sends the request of a watch that the server will end after `lifetime`.
    pub(crate) async fn open(
        client: &Client,
        request: http::Request<Body>,
        lifetime: Duration,
    ) -> Result<Self, Fault> {
        let opened = Instant::now();
        let (encoding, body) = send(client, request).await?;
        let ends = opened + lifetime + GRACE;
        let messages = Splitter::of(encoding);
        Ok(Self { body, encoding, messages, opened, ends })
    }

    pub(crate) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Has the next message taken in; `None` when the server has closed the stream. Gives up when
    /// the server says nothing for `patience`, or keeps the stream open past its lifetime: a
    /// connection that is dead without a reset would otherwise be waited on without end.
    pub(crate) async fn next(
        &mut self,
        patience: Duration,
        take: impl FnOnce(Encoding, &[u8]) -> Result<MessageHead, Fault>,
    ) -> Result<Option<MessageHead>, Fault> {
        // Thousands of messages may be there at once; other tasks of this thread get their turn.
        tokio::task::consume_budget().await;
        loop {
            if let Some(message) = self.messages.next()? {
                return take(self.encoding, message).map(Some);
            }
            let since = Instant::now();
            let limit = since.checked_add(patience).map_or(self.ends, |at| at.min(self.ends));
            match timeout_at(limit, self.body.frame()).await {
                Err(_) => return Err(Fault::Silent(since.elapsed())),
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => {
                    // Trailers, the other kind of frame, say nothing here.
                    if let Ok(data) = frame?.into_data() {
                        self.messages.push(data);
                    }
                }
            }
        }
    }
}

/// Sends the request of a page and reads all of the answer, unless it is longer than `longest`.
pub(crate) async fn fetch(
    client: &Client,
    request: http::Request<Body>,
    longest: usize,
) -> Result<(Encoding, Bytes), Fault> {
    let whole = async {
        let (encoding, body) = send(client, request).await?;
        Ok((encoding, collect(body, longest).await?))
    };
    timeout(PAGE, whole).await.unwrap_or(Err(Fault::Silent(PAGE)))
}

async fn send(client: &Client, request: http::Request<Body>) -> Result<(Encoding, Body), Fault> {
    let answer = async {
        let (head, body) = client.send(request).await?.into_parts();
        let encoding = Encoding::of(&head.headers);
        if head.status.is_success() {
            return Ok((encoding, body));
        }
        let wait = retry_after(&head.headers).unwrap_or_default();
        let status = decode::status(&collect(body, LONGEST_REFUSAL).await?);
        Err(refusal(Status { code: head.status.as_u16(), ..status }, wait))
    };
    timeout(OPENING, answer).await.unwrap_or(Err(Fault::Silent(OPENING)))
}

/// Reads all of a body, unless it is longer than `limit`.
async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Fault> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > limit {
            return Err(Fault::PageTooLong(limit));
        }
    }
    Ok(bytes.freeze())
}

/// The fault that a status of the server stands for; the headers asked to be left alone for `wait`.
pub(crate) fn refusal(status: Status, wait: Duration) -> Fault {
    let Status { code, reason, message, details, .. } = status;
    let asked = Duration::from_secs(details.retry_after_seconds.into()).min(RETRY_AFTER_MAX);
    Fault::Status { code, reason, message, retry_after: wait.max(asked) }
}

/// Usage: push a frame, take messages until `None`, push the next frame.
pub(crate) enum Splitter {
    Lines(LineSplitter),
    Messages(MessageSplitter),
}

impl Splitter {
    pub(crate) fn of(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Json => Self::Lines(LineSplitter::default()),
            Encoding::Protobuf => Self::Messages(MessageSplitter::default()),
        }
    }

    /// Takes the next frame. All messages of the one before must have been taken.
    pub(crate) fn push(&mut self, frame: Bytes) {
        match self {
            Self::Lines(lines) => lines.push(frame),
            Self::Messages(messages) => messages.push(frame),
        }
    }

    /// The next whole message; `None` when more input is needed.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        match self {
            Self::Lines(lines) => lines.next_line(),
            Self::Messages(messages) => messages.next_message(),
        }
    }
}

/// Usage: push a frame, take lines until `None`, push the next frame.
#[derive(Default)]
pub(crate) struct LineSplitter {
    frame: Bytes,
    /// Where the next line starts in `frame`.
    at: usize,
    /// Start of a line whose end has not come; keeps its allocation from line to line.
    held: Vec<u8>,
    /// `held` has been handed out as a whole line.
    spent: bool,
}

impl LineSplitter {
    /// Takes the next frame. All lines of the one before must have been taken.
    pub(crate) fn push(&mut self, frame: Bytes) {
        debug_assert!(self.frame[self.at..].iter().all(|byte| *byte != b'\n'), "lines are left");
        self.frame = frame;
        self.at = 0;
    }

    /// The next whole line without its newline; `None` when more input is needed.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, Fault> {
        if self.spent {
            self.held.clear();
            self.spent = false;
        }
        let Some(length) = memchr(b'\n', &self.frame[self.at..]) else {
            self.hold_rest();
            return if self.held.len() > LONGEST_MESSAGE {
                Err(Fault::MessageTooLong(LONGEST_MESSAGE))
            } else {
                Ok(None)
            };
        };
        let line = &self.frame[self.at..self.at + length];
        self.at += length + 1;
        if self.held.is_empty() {
            return Ok(Some(line));
        }
        self.held.extend_from_slice(line);
        self.spent = true;
        Ok(Some(&self.held))
    }

    fn hold_rest(&mut self) {
        self.held.extend_from_slice(&self.frame[self.at..]);
        self.push(Bytes::new());
    }
}

const PREFIX: usize = 4;

/// Does not copy a message that lies in one frame.
#[derive(Default)]
pub(crate) struct MessageSplitter {
    frame: Bytes,
    /// Where the next message starts in `frame`.
    at: usize,
    /// Start of a message whose end has not come, its prefix included; keeps its allocation.
    held: Vec<u8>,
    /// `held` has been handed out as a whole message.
    spent: bool,
}

impl MessageSplitter {
    pub(crate) fn push(&mut self, frame: Bytes) {
        self.frame = frame;
        self.at = 0;
    }

    pub(crate) fn next_message(&mut self) -> Result<Option<&[u8]>, Fault> {
        if self.spent {
            self.held.clear();
            self.spent = false;
        }
        if self.held.is_empty() {
            let rest = &self.frame[self.at..];
            if let Some(length) = length_of(rest)?
                && rest.len() >= length
            {
                let start = self.at + PREFIX;
                self.at += length;
                return Ok(Some(&self.frame[start..self.at]));
            }
        }
        // First the prefix is completed, then what it announces.
        self.hold_until(PREFIX);
        let Some(length) = length_of(&self.held)? else { return Ok(None) };
        self.hold_until(length);
        if self.held.len() < length {
            return Ok(None);
        }
        self.spent = true;
        Ok(Some(&self.held[PREFIX..]))
    }

    /// Moves bytes from the frame until `length` are held or the frame is used up.
    fn hold_until(&mut self, length: usize) {
        let wanted = length.saturating_sub(self.held.len());
        let taken = wanted.min(self.frame.len() - self.at);
        self.held.extend_from_slice(&self.frame[self.at..self.at + taken]);
        self.at += taken;
    }
}

/// Length of the message with its prefix, once the prefix is there.
fn length_of(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else { return Ok(None) };
    match usize::try_from(u32::from_be_bytes(*prefix)) {
        Ok(length) if length <= LONGEST_MESSAGE => Ok(Some(PREFIX + length)),
        _ => Err(Fault::MessageTooLong(LONGEST_MESSAGE)),
    }
}

/// Longest message. No object is larger: etcd takes 1.5 MiB, and JSON can be a few times its stored form.
pub(crate) const LONGEST_MESSAGE: usize = 32 << 20;

#[cfg(test)]
mod tests;
