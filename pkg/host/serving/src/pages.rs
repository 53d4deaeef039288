//! The pages of one listener, which come while the server runs; requests see those of that moment.
//! [`answer`] leads from a request to its reply: find the page, judge the peer, read the body, ask the
//! handler.

mod encoding;
mod metrics;

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Body;
use parking_lot::RwLock;
use prometheus::Registry;
use tokio::time::timeout;
use tracing::error;

use crate::guard::{Guard, Visit};
use crate::health::Endpoint;
use crate::page::{Page, PageRequest};
use crate::reply::{self, Reply};
use crate::{Access, BuildInfo, Health, Peer, PeerCertificate};

pub use metrics::Exposition;

/// A set of pages. Clones share it.
#[derive(Clone, Default)]
pub struct Pages(Arc<RwLock<Vec<Arc<Page>>>>);

impl Pages {
    /// A set without pages: every path is unknown.
    pub fn new() -> Self {
        Self::default()
    }

    /// The pages that every process of this kind has: health, metrics and version.
    pub fn standard(
        health: &Health,
        registry: &Registry,
        build: &BuildInfo,
        exposition: &Exposition,
    ) -> Self {
        let pages = Self::new();
        for page in health_pages(health) {
            pages.add(page);
        }
        for page in metrics::pages(health, registry, exposition) {
            pages.add(page);
        }
        let version = build.to_json();
        pages.add(Page::new("/version", Access::Authorized, move |_| {
            std::future::ready(reply::json(StatusCode::OK, version.clone()))
        }));
        pages
    }

    /// Adds a page, or replaces the one of the same path: a controller that is started again
    /// brings its page again.
    pub fn add(&self, page: Page) {
        let mut pages = self.0.write();
        match pages.iter_mut().find(|known| known.path() == page.path()) {
            Some(known) => *known = Arc::new(page),
            None => pages.push(Arc::new(page)),
        }
    }

    /// Lists the paths of all pages, in order. For a page of this very set: it does not keep the
    /// set alive.
    pub fn paths(&self) -> impl Fn() -> Vec<String> + Send + Sync + 'static {
        let pages = Arc::downgrade(&self.0);
        move || {
            let Some(pages) = pages.upgrade() else { return Vec::new() };
            let mut paths: Vec<_> =
                pages.read().iter().map(|page| page.path().to_owned()).collect();
            paths.sort_unstable();
            paths
        }
    }

    /// The page for `path`: of those that stand for it the one with the longest path, as in Go's
    /// `http.ServeMux`.
    pub(crate) fn find(&self, path: &str) -> Option<Arc<Page>> {
        let pages = self.0.read();
        pages.iter().filter(|page| page.covers(path)).max_by_key(|page| page.path().len()).cloned()
    }
}

/// Two pages for each endpoint: its checks together, which guards let everyone see, and each by
/// itself for those who may ask.
fn health_pages(health: &Health) -> impl Iterator<Item = Page> {
    Endpoint::EVERY.into_iter().flat_map(|endpoint| {
        let path = format!("/{}", endpoint.name());
        let below = format!("{path}/");
        let (all, one, prefix) = (health.clone(), health.clone(), below.clone());
        [
            Page::new(path, Access::Authorized, move |request| {
                ready(summary(&all, endpoint, &request.uri))
            }),
            Page::new(below, Access::Authorized, move |request| {
                let name = request.uri.path().strip_prefix(&prefix).unwrap_or_default();
                ready(single(&one, endpoint, name))
            }),
        ]
    })
}

fn summary(health: &Health, endpoint: Endpoint, uri: &Uri) -> Reply {
    let mut verbose = false;
    let mut excluded = BTreeSet::new();
    for (key, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match key.as_ref() {
            "verbose" => verbose = true,
            "exclude" => {
                excluded.insert(value.into_owned());
            }
            _ => {}
        }
    }
    let report = health.report(endpoint, excluded);
    let status = if report.failed() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    reply::text(status, report.body(verbose))
}

fn single(health: &Health, endpoint: Endpoint, name: &str) -> Reply {
    match health.run_one(endpoint, name) {
        None => reply::not_found(),
        Some(Ok(())) => reply::text(StatusCode::OK, "ok"),
        Some(Err(reason)) => reply::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("internal server error: {reason}\n"),
        ),
    }
}

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
