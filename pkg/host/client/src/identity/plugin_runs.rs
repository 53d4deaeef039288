//! When an exec plugin is run, and what its last good run gave. Held by the follower of the
//! credentials alone.

use std::time::Duration;

use resilience::{Backoff, Jitter, Series};
use tokio::time::Instant;

use crate::config::settings::PluginSpec;
use crate::identity::plugin::{self, Issued, PluginError};
use crate::identity::plugin_metrics::{End, PluginMetrics};

/// The server's refusals make a plugin run at most this often.
const REFUSAL_PAUSE: Duration = Duration::from_secs(5);

/// The runs of one plugin.
pub(crate) struct PluginRuns {
    spec: PluginSpec,
    /// What the last run that went well gave.
    issued: Option<Issued>,
    /// Why the last run failed, if it did.
    failure: Option<PluginError>,
    ran_at: Option<Instant>,
    retry_at: Option<Instant>,
    retries: Series,
    metrics: PluginMetrics,
    end: End,
    /// Since when the certificate is in use that it gave.
    certified_at: Option<Instant>,
}

impl PluginRuns {
    pub(crate) fn new(spec: PluginSpec, metrics: &PluginMetrics) -> Self {
        let (first, cap) = (Duration::from_secs(5), Duration::from_secs(60));
        let retries = Series::new(Backoff::doubling(first, cap, Jitter::None));
        let (end, metrics) = (metrics.follow(), metrics.clone());
        Self {
            spec,
            issued: None,
            failure: None,
            ran_at: None,
            retry_at: None,
            retries,
            metrics,
            end,
            certified_at: None,
        }
    }

    /// Starts over when the plugin of the configuration is another one.
    pub(crate) fn adopt(
        runs: &mut Option<Self>,
        spec: Option<&PluginSpec>,
        metrics: &PluginMetrics,
    ) {
        if runs.as_ref().map(|runs| &runs.spec) != spec {
            *runs = spec.cloned().map(|spec| Self::new(spec, metrics));
        }
    }

    /// What requests are to use.
    pub(crate) fn issued(&self) -> Result<Issued, PluginError> {
        let waiting = || PluginError::Waiting { command: plugin::name(&self.spec.command) };
        let failed = || self.failure.clone().unwrap_or_else(waiting);
        self.issued.clone().ok_or_else(failed)
    }

    /// Why the last run failed, if it did.
    pub(crate) fn failure(&self) -> Option<&PluginError> {
        self.failure.as_ref()
    }

    /// When the next run is due by itself; `None` when only a refusal of the server tells.
    pub(crate) fn due_at(&self, now: Instant) -> Option<Instant> {
        match (&self.issued, self.retry_at) {
            (_, Some(retry_at)) => Some(retry_at),
            (Some(issued), None) => issued.renew_at,
            (None, None) => Some(now),
        }
    }

    /// Whether to run it now. `refused`: the server did not know us with what it gave.
    pub(crate) fn is_due(&self, refused: bool) -> bool {
        let now = Instant::now();
        let rested = self.ran_at.is_none_or(|at| now >= at + REFUSAL_PAUSE);
        (refused && rested) || self.due_at(now).is_some_and(|at| at <= now)
    }

    /// Runs it. A failure leaves what an earlier run gave.
    pub(crate) async fn run(&mut self) {
        self.ran_at = Some(Instant::now());
        match plugin::run(&self.spec).await {
            Ok(issued) => {
                self.retries.reset();
                self.measure(&issued);
                (self.issued, self.failure, self.retry_at) = (Some(issued), None, None);
            }
            Err(error) => {
                let pause = self.retries.fail(Instant::now());
                (self.failure, self.retry_at) = (Some(error), Some(Instant::now() + pause));
            }
        }
    }

    fn measure(&mut self, next: &Issued) {
        *self.end.lock() = next.ends_at;
        let before = self.issued.as_ref().and_then(|issued| issued.certificate.as_ref());
        let is_rotated = before.is_some() && before != next.certificate.as_ref();
        let now = Instant::now();
        if let Some(since) = self.certified_at.filter(|_| is_rotated) {
            self.metrics.rotated(now.saturating_duration_since(since));
        }
        if before != next.certificate.as_ref() {
            self.certified_at = Some(now);
        }
    }
}
