//! Metrics of calls to Google. Those of tokens have the names that kube-controller-manager had.

use prometheus::{IntCounter, IntCounterVec, Registry};

use crate::error::GceError;

/// Metrics of calls to Google. Clones are the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    tokens: IntCounter,
    token_failures: IntCounter,
}

impl Metrics {
    /// Registers them.
    ///
    /// # Errors
    /// One of the names is taken.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "Calls to the cloud, by method and result.";
        let labels = &["call", "code"];
        let count = |name, help| metrics::register(registry, IntCounter::new(name, help)?);
        Ok(Self {
            requests: metrics::counter(registry, "node_ipam_cloud_requests_total", help, labels)?,
            tokens: count("get_token_count", "Requests for access tokens of the cloud.")?,
            token_failures: count(
                "get_token_fail_count",
                "Requests for access tokens of the cloud that failed.",
            )?,
        })
    }

    pub(crate) fn called<T>(&self, call: &str, outcome: &Result<T, GceError>) {
        let code = outcome.as_ref().err().map_or_else(|| "200".to_owned(), GceError::label);
        self.requests.with_label_values(&[call, &code]).inc();
    }

    pub(crate) fn asked_for_token(&self, was_given: bool) {
        self.tokens.inc();
        if !was_given {
            self.token_failures.inc();
        }
    }
}
