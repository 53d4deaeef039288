//! Checks of this host: the files that the flags name, and the port.

use client::{Clients, RequestMetrics, ThrottleMetrics};
use jiff::{SignedDuration, Timestamp};
use prometheus::Registry;
use serving::{ServeError, Server};

use super::report::{Check, Report};
use crate::pages;
use crate::serve;
use crate::serve::Common;
use crate::settings::ProcessSettings;

/// A client certificate that ends sooner is told. kubeadm's live for a year.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

const ADVICE: &str =
    "correct the command line, or run check on the host where the program will run";

/// Checks that need no API server.
pub(super) async fn check(settings: &ProcessSettings, report: &mut Report) {
    let manifest = settings.label_manifest.as_deref();
    if let Err(error) = pages::with_manifest(settings.exposition.clone(), manifest).await {
        report.error(Check::Flags, format!("{error:#}"), ADVICE);
    }
    let Some(serving) = &settings.serving else { return };
    for obstacle in Server::obstacles(&serving.listener).await {
        match obstacle {
            // Whoever has it may have ended when this program starts, as when it takes its place.
            ServeError::AddressInUse { .. } => report.warn(Check::Flags, obstacle, ""),
            error => report.error(Check::Flags, error, ADVICE),
        }
    }
}

/// Loads client CAs and the kubeconfigs of the reviewing API server. Sends no request.
pub(super) async fn check_guard(
    settings: &ProcessSettings,
    clients: &Clients,
    requests: &RequestMetrics,
    report: &mut Report,
) {
    let Some(serving) = &settings.serving else { return };
    let registry = Registry::new();
    let guard = async {
        let throttles = &ThrottleMetrics::new(&registry)?;
        let common = Common { options: &settings.client, clients, requests, throttles };
        serve::guard(serving, &common, &registry).await
    };
    if let Err(error) = guard.await {
        report.error(Check::Flags, format!("{error:#}"), ADVICE);
    }
}

/// The end of the client certificate of `--kubeconfig`, if it has one.
pub(super) fn check_certificate(end: Option<Timestamp>, now: Timestamp, report: &mut Report) {
    let Some(end) = end else { return };
    let left = end.duration_since(now);
    let days = left.as_hours() / 24;
    let advice = "renew it with kubeadm certs renew controller-manager.conf, or with the tool \
        that created the kubeconfig";
    if !left.is_positive() {
        let message = format!("the client certificate of --kubeconfig expired on {end}");
        report.error(Check::ApiServer, message, advice);
    } else if left < SOON {
        let message =
            format!("the client certificate of --kubeconfig expires in {days} days, on {end}");
        report.warn(Check::ApiServer, message, advice);
    } else {
        let message = format!("the client certificate of --kubeconfig is valid for {days} days");
        report.note(Check::ApiServer, message);
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Severity;
    use super::*;

    #[test]
    fn a_client_certificate_that_ends_within_thirty_days_is_reported() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let told = |end: &str| {
            let mut report = Report::default();
            check_certificate(Some(end.parse().unwrap()), now, &mut report);
            let line = &report.lines()[0];
            (line.severity, line.message.clone())
        };
        let (severity, message) = told("2026-01-30T12:00:00Z");
        assert_eq!(severity, Severity::Warning);
        assert!(message.contains("expires in 29 days, on 2026-01-30T12:00:00Z"), "{message}");
        assert_eq!(told("2025-12-31T00:00:00Z").0, Severity::Error);
        assert_eq!(told("2026-02-01T00:00:00Z").0, Severity::Note);
        let mut report = Report::default();
        check_certificate(None, now, &mut report);
        assert!(report.lines().is_empty(), "a token has no end that the kubeconfig tells");
    }
}
