//! From a request to its reply: find the page, judge the peer, read the body, ask the handler.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Body;
use tokio::time::timeout;
use tracing::error;

use crate::guard::{Guard, Visit};
use crate::page::{Page, PageRequest};
use crate::reply::{self, Reply};
use crate::{Access, Pages, Peer, PeerCertificate};

/// From the end of the head to the reply, kube-apiserver's limit for requests.
const LIMIT: Duration = Duration::from_secs(60);

/// Answers one request, whatever its page does. Connections ask so; a test of a page needs none.
pub async fn answer<B>(pages: &Pages, guard: &dyn Guard, peer: Peer, request: Request<B>) -> Reply
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let (path, headers_only) = (head.uri.path().to_owned(), head.method == Method::HEAD);
    let mut reply =
        timeout(LIMIT, reply_to(pages, guard, peer, head, body)).await.unwrap_or_else(|_| {
            error!(logger = "serving", path, "Page did not answer in time");
            reply::failure(
                StatusCode::GATEWAY_TIMEOUT,
                "Timeout",
                "the page did not answer in time",
            )
        });
    let never_stored = HeaderValue::from_static("no-cache, private");
    reply.headers_mut().entry(CACHE_CONTROL).or_insert(never_stored);
    if headers_only { without_body(reply) } else { reply }
}

/// HTTP/2 as hyper serves it would send the body of an answer to HEAD, which breaks the stream.
fn without_body(mut reply: Reply) -> Reply {
    let length = reply.body().size_hint().exact().unwrap_or_default();
    reply.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    reply.map(|_| Full::default())
}

async fn reply_to<B>(pages: &Pages, guard: &dyn Guard, peer: Peer, head: Parts, body: B) -> Reply
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = head.uri.path();
    let page = pages.find(path);
    // rule:the-guard-decides
    let access = page.as_ref().map_or(Access::Authorized, |page| page.access());
    if let Err(refusal) = admit(access, guard, &peer, &head).await {
        return refusal;
    }
    let Some(page) = page else { return reply::not_found() };
    match page.body().read(body, &head.headers).await {
        Ok(body) => ask(&page, peer, head, body.bytes.clone()).await,
        Err(refusal) => refusal,
    }
}

/// Applies the access rule of the page to the peer.
async fn admit(access: Access, guard: &dyn Guard, peer: &Peer, head: &Parts) -> Result<(), Reply> {
    let Parts { method, headers, uri, .. } = head;
    match access {
        Access::Authorized => guard.judge(Visit { peer, method, path: uri.path(), headers }).await,
        Access::TrustedCertificate => match peer.certificate {
            PeerCertificate::Trusted(_) => Ok(()),
            _ => Err(reply::unauthorized()),
        },
    }
}

async fn ask(page: &Page, peer: Peer, head: Parts, body: Bytes) -> Reply {
    let Parts { method, uri, mut headers, .. } = head;
    headers.remove(AUTHORIZATION);
    let path = uri.path().to_owned();
    page.answer(PageRequest { method, uri, headers, body, peer }).await.unwrap_or_else(|err| {
        error!(logger = "serving", path, %err, "Page panicked");
        reply::failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "the page failed")
    })
}

#[cfg(test)]
mod tests;
