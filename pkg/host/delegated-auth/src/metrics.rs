//! Metrics of reviews and of the guard. Names without `icm_` are those of Kubernetes' components.

use std::time::Duration;

use http::StatusCode;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounterVec, Registry};

/// Metrics of one kind of reviews.
#[derive(Clone)]
pub(crate) struct BackendMetrics {
    requests: IntCounterVec,
    durations: HistogramVec,
}

/// Metrics of the guard.
#[derive(Clone)]
pub(crate) struct GuardMetrics {
    authentications: IntCounterVec,
    authorizations: IntCounterVec,
    stale: IntCounterVec,
    certificate_lives: Histogram,
}

impl BackendMetrics {
    /// `short` is `authn` or `authz`, `long` says what that is.
    pub(crate) fn new(
        registry: &Registry,
        short: &str,
        long: &str,
    ) -> Result<Self, prometheus::Error> {
        let name = |rest: &str| format!("apiserver_delegated_{short}_request_{rest}");
        let requests = metrics::counter(
            registry,
            &name("total"),
            &format!("[ALPHA] Requests for delegated {long}, by status code."),
            &["code"],
        )?;
        let durations = metrics::histogram(
            registry,
            &name("duration_seconds"),
            &format!("[ALPHA] Duration of requests for delegated {long}, by status code."),
            &["code"],
            &[0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0],
        )?;
        Ok(Self { requests, durations })
    }

    pub(crate) fn count(&self, status: Option<StatusCode>, took: Duration) {
        let code =
            status.map_or_else(|| "<error>".to_owned(), |status| status.as_u16().to_string());
        self.requests.with_label_values(&[&code]).inc();
        self.durations.with_label_values(&[&code]).observe(took.as_secs_f64());
    }
}

impl GuardMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let authentications = metrics::counter(
            registry,
            "authentication_attempts",
            "[ALPHA] Requests by result of authentication: success, failure or error.",
            &["result"],
        )?;
        let authorizations = metrics::counter(
            registry,
            "authorization_attempts_total",
            "[ALPHA] Requests by result of authorization: allowed, denied or error.",
            &["result"],
        )?;
        let stale = metrics::counter(
            registry,
            "icm_delegated_auth_stale_total",
            "Requests served by an earlier review while the API server did not answer: of tokens \
             (authn) or access (authz).",
            &["review"],
        )?;
        let help = "[ALPHA] Remaining lifetime of client certificates when they are used.";
        let lives = HistogramOpts::new("apiserver_client_certificate_expiration_seconds", help);
        let lives = Histogram::with_opts(lives.buckets(days_and_hours()))?;
        let certificate_lives = metrics::register(registry, lives)?;
        for review in ["authn", "authz"] {
            stale.with_label_values(&[review]);
        }
        Ok(Self { authentications, authorizations, stale, certificate_lives })
    }

    pub(crate) fn authentication(&self, result: &str) {
        self.authentications.with_label_values(&[result]).inc();
    }

    pub(crate) fn authorization(&self, result: &str) {
        self.authorizations.with_label_values(&[result]).inc();
    }

    pub(crate) fn stale(&self, review: &str) {
        self.stale.with_label_values(&[review]).inc();
    }

    pub(crate) fn certificate_life(&self, seconds: f64) {
        self.certificate_lives.observe(seconds);
    }
}

fn days_and_hours() -> Vec<f64> {
    let hours = [0.0, 0.5, 1.0, 2.0, 6.0, 12.0];
    let days = [1.0, 2.0, 4.0, 7.0, 30.0, 90.0, 180.0, 360.0];
    let hours = hours.iter().map(|hours| hours * 3600.0);
    hours.chain(days.iter().map(|days| days * 86400.0)).collect()
}
