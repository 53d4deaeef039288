//! The page `/metrics/slis`: what the checks answered to those who asked
//! (`component-base/metrics/prometheus/slis`).

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::check::Check;
use super::endpoint::Endpoint;

/// Renders Prometheus text. Checks that were never asked have no series.
pub(super) fn page(checks: &[Arc<Check>]) -> String {
    let (mut state, mut totals) = (String::new(), String::new());
    for check in checks {
        for endpoint in Endpoint::EVERY {
            rows(check, endpoint, &mut state, &mut totals);
        }
    }
    format!(
        "# HELP kubernetes_healthcheck [STABLE] Last answer of a health check: 1 passed, 0 failed.\n\
         # TYPE kubernetes_healthcheck gauge\n{state}\
         # HELP kubernetes_healthchecks_total [STABLE] Answers of a health check by status.\n\
         # TYPE kubernetes_healthchecks_total counter\n{totals}"
    )
}

fn rows(check: &Check, endpoint: Endpoint, state: &mut String, totals: &mut String) {
    let tally = check.tally(endpoint);
    let success = tally.success.load(Ordering::Relaxed);
    let error = tally.error.load(Ordering::Relaxed);
    if success + error == 0 {
        return;
    }
    let labels = format!("name=\"{}\",type=\"{}\"", escaped(check.name()), endpoint.name());
    let last = tally.last.load(Ordering::Relaxed);
    writeln!(state, "kubernetes_healthcheck{{{labels}}} {last}").ok();
    for (status, count) in [("success", success), ("error", error)] {
        if count > 0 {
            writeln!(
                totals,
                "kubernetes_healthchecks_total{{{labels},status=\"{status}\"}} {count}"
            )
            .ok();
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
