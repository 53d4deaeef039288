//! What needs no review of access: paths for everybody, and readers of metrics by flag.

use http::Method;

use crate::user::User;

/// Members may do everything, as everywhere in Kubernetes.
const MASTERS: &str = "system:masters";

/// Paths that are open to all.
#[derive(Debug)]
pub struct OpenPaths {
    exact: Vec<String>,
    prefixes: Vec<String>,
}

impl OpenPaths {
    /// From `--authorization-always-allow-paths`: with or without a slash in front; a final `*`
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
