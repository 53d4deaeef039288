//! What the flags name on this host: files, which a start reads, and the port, which it takes.

use client::{Clients, RequestMetrics, ThrottleMetrics};
use prometheus::Registry;
use serving::{ServeError, Server};

use super::report::{Check, Report};
use crate::delegated::{self, Common};
use crate::exposition;
use crate::settings::ProcessSettings;

const ADVICE: &str = "correct the command line, or check on the host that it is for";

/// What needs no API server to be known.
pub(super) async fn check(settings: &ProcessSettings, report: &mut Report) {
    let manifest = settings.label_manifest.as_deref();
    if let Err(error) = exposition::with_manifest(settings.exposition.clone(), manifest).await {
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

/// The CAs of clients, and the kubeconfigs of whom is asked about them. Nothing is asked.
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
        delegated::guard(serving, &common, &registry).await
    };
    if let Err(error) = guard.await {
        report.error(Check::Flags, format!("{error:#}"), ADVICE);
    }
}
