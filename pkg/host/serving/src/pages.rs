//! The pages of one listener. They come while the server runs; requests see those of that moment.

mod encoding;
mod metrics;

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;

use http::{StatusCode, Uri};
use parking_lot::RwLock;
use prometheus::Registry;

use crate::health::Endpoint;
use crate::{Access, BuildInfo, Health, Page, Reply, reply};

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

#[cfg(test)]
mod tests;
