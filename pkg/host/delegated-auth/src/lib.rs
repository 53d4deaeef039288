//! Authentication and authorization, delegated to the API server as every component of Kubernetes
//! does it. [`Delegation`] guards the secure port of the process.
//!
//! A request is authenticated by the first of these that knows it: a proxy that speaks for others,
//! a client certificate, a bearer token, which the API server reviews. Then it is authorized by the
//! first of these: `system:masters`, a path that is always allowed, a reader of metrics by flag, a
//! review of access.
//!
//! | file | holds |
//! |---|---|
//! | `guard.rs` | [`Delegation`]: the order of the above |
//! | `user.rs` | the user of a request |
//! | `trust.rs` | judges a client's certificate; the CAs, from files or from the cluster, and how they stay fresh |
//! | `api_reviews.rs` | the two kinds of reviews: request, retries, log |
//! | `reviews.rs` | the cache of reviews: reuse, one at a time, bounds, outages |
//! | `metrics.rs` | metrics of reviews and of the guard |
//! | here | [`DelegationOptions`] from flags; [`OpenPaths`], which need no review |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod api_reviews;
mod guard;
mod metrics;
mod reviews;
mod trust;
mod user;

use std::path::PathBuf;
use std::time::Duration;

use http::Method;

use crate::user::User;

pub use guard::{Delegation, DelegationError, Reviewers};
pub use trust::{LookupError, TrustError};
pub use user::RequestHeaders;

/// How requests are authenticated and authorized.
#[derive(Clone, Debug)]
pub struct DelegationOptions {
    /// CAs of clients; without it they are looked up in the cluster.
    pub client_ca_file: Option<PathBuf>,
    /// CAs of authenticating proxies; without it they are looked up in the cluster, with their
    /// headers.
    pub proxy_ca_file: Option<PathBuf>,
    /// The headers that count with [`proxy_ca_file`](Self::proxy_ca_file).
    pub proxy_headers: RequestHeaders,
    /// Whether no CA is looked up in the cluster.
    pub skip_lookup: bool,
    /// Whether a lookup that the API server refuses is logged and tried again; otherwise it ends the process.
    pub tolerate_lookup_failure: bool,
    /// How long the answer about a token is reused.
    pub token_ttl: Duration,
    /// How long a right that is there is reused.
    pub allowed_ttl: Duration,
    /// How long a right that is not there is reused.
    pub denied_ttl: Duration,
    /// How long a granted answer counts while there is no new one
    /// (rule:readers-outlive-an-outage).
    pub outage_grace: Duration,
    /// Paths that need no review; a final `*` stands for the rest.
    pub always_allow_paths: Vec<String>,
    /// Users, and groups as `group:NAME`, that read `/metrics` without a review.
    pub metrics_readers: Vec<String>,
}

/// Members may do everything, as everywhere in Kubernetes.
const MASTERS: &str = "system:masters";

/// Paths that are open to all.
#[derive(Debug)]
pub struct OpenPaths {
    exact: Vec<String>,
    prefixes: Vec<String>,
}

impl OpenPaths {
    /// Makes the open paths of `--authorization-always-allow-paths`: with or without a slash in front; a final `*`
    /// stands for the rest.
    pub fn new(patterns: &[String]) -> Self {
        let mut paths = Self { exact: Vec::new(), prefixes: Vec::new() };
        for pattern in patterns.iter().filter(|pattern| !pattern.is_empty()) {
            let path = pattern.strip_prefix('/').unwrap_or(pattern);
            match path.strip_suffix('*') {
                Some(prefix) => paths.prefixes.push(prefix.to_owned()),
                None => paths.exact.push(path.to_owned()),
            }
        }
        paths
    }

    /// Whether everybody may ask for `path`.
    pub fn cover(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.exact.iter().any(|open| open == path)
            || self.prefixes.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }
}

/// Users and groups that read metrics without a review.
#[derive(Debug)]
pub(crate) struct MetricsReaders(Vec<String>);

impl MetricsReaders {
    /// From `--metrics-allowed-users`: names of users, and of groups behind `group:`.
    pub(crate) fn new(names: &[String]) -> Self {
        Self(names.to_vec())
    }

    pub(crate) fn include(&self, user: &User) -> bool {
        self.0.iter().any(|name| match name.strip_prefix("group:") {
            Some(group) => user.is_in(group),
            None => *name == user.name,
        })
    }
}

/// Whether the user may do everything.
pub(crate) fn is_master(user: &User) -> bool {
    user.is_in(MASTERS)
}

/// Whether nothing is changed by it.
pub(crate) fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Whether it is a path of metrics.
pub(crate) fn is_metrics(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/metrics/")
}

#[cfg(test)]
mod tests;
