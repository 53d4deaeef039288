//! `/healthz`, `/livez`, `/readyz` and, below them, a path for each check.

use std::collections::BTreeSet;
use std::future::ready;

use http::{StatusCode, Uri};

use crate::health::Endpoint;
use crate::{Access, Health, Page, Reply, reply};

/// Two pages for each endpoint: its checks together, which guards let everyone see, and each by
/// itself for those who may ask (rule:reasons-are-withheld).
pub(super) fn pages(health: &Health) -> impl Iterator<Item = Page> {
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
