//! Metrics of the webhook: requests and results.

use prometheus::{IntCounterVec, Registry};
use validation::{CheckResult, Findings, NetworkChecks};

/// Clones are the same metrics.
#[derive(Clone)]
pub(super) struct WebhookMetrics {
    checks: IntCounterVec,
}

impl WebhookMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let checks = metrics::counter(
            registry,
            "clusterhealth_webhook_checks_total",
            "What the validating webhook judged: whole requests, and the checks of the network \
             that were made for them; by what it came to.",
            &["rule", "outcome"],
        )?;
        Ok(Self { checks })
    }

    /// A request and its answer.
    pub(super) fn judged(&self, findings: &Findings) {
        let outcome = if findings.errors.is_empty() { "passed" } else { "refused" };
        self.count("request", outcome, 1);
    }

    /// A request that could not be read.
    pub(super) fn unreadable(&self) {
        self.count("request", "unreadable", 1);
    }

    /// A request for which the network could not be asked, since others have all turns.
    pub(super) fn busy(&self) {
        self.count("request", "busy", 1);
    }

    /// The answers to `asked` questions.
    pub(super) fn answered(&self, known: &NetworkChecks, asked: usize) {
        let parts = [
            ("ssh", &known.ssh),
            ("tcp", &known.tcp),
            ("credential", &known.credentials),
            ("import", &known.imports),
        ];
        let mut answered = 0;
        for (rule, answers) in parts {
            let passed = answers.values().filter(|it| **it == CheckResult::Passed).count();
            self.count(rule, "passed", passed);
            self.count(rule, "refused", answers.len() - passed);
            answered += answers.len();
        }
        self.count("network", "unanswered", asked.saturating_sub(answered));
    }

    fn count(&self, rule: &str, outcome: &str, more: usize) {
        if more > 0 {
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            self.checks.with_label_values(&[rule, outcome]).inc_by(more);
        }
    }
}
