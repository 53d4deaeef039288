//! Answers of the API server: an open watch read message by message, a page read whole.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube_api::Status;
use tokio::time::{Instant, timeout, timeout_at};
use transport::{RETRY_AFTER_MAX, retry_after};

use crate::decode;
use crate::fault::Fault;
use crate::intake::MessageHead;
use crate::request::Encoding;
use crate::splitter::Splitter;

/// Longest wait for the headers of an answer. A server in trouble often takes the request and
/// never answers.
const OPENING: Duration = Duration::from_secs(30);
/// Longest wait for one page of 500 objects, all of it; the server's own limit for a list.
const PAGE: Duration = Duration::from_secs(60);
/// A server whose clock or timer is a little late ends a watch after our own time.
const GRACE: Duration = Duration::from_secs(10);

/// A page of 500 objects of 128 KiB. One that is longer is asked for in parts.
pub(crate) const LONGEST_PAGE: usize = 64 << 20;
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

/// Sends the request of a page and reads all of the answer.
pub(crate) async fn fetch(
    client: &Client,
    request: http::Request<Body>,
) -> Result<(Encoding, Bytes), Fault> {
    let whole = async {
        let (encoding, body) = send(client, request).await?;
        Ok((encoding, collect(body, LONGEST_PAGE).await?))
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

#[cfg(test)]
mod tests;
