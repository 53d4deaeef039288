//! [`ClusterProber`]: how one cluster is probed, with the client that its object asks for.

use std::time::Duration;

use futures::future::BoxFuture;
use health::{Code, Endpoints, Finding, ProbePath, Report};
pub(crate) use probe::now;

use super::contact::Contact;

/// Probes one cluster. Holds its connections and its credential; dropping it closes and clears
/// them.
pub trait ClusterProber: Send + Sync + 'static {
    /// One probe within `budget`. It asks the management API for nothing but a credential that was
    /// refused (`rule:probes-ask-members-only`, `rule:a-refused-credential-is-read-once`). The engine cancels it by dropping the
    /// future, which leaves the prober usable.
    fn probe(&self, budget: Duration) -> BoxFuture<'_, Report>;

    /// What is known of the way to the cluster by now. No waiting.
    fn contact(&self) -> Contact {
        Contact::default()
    }
}

/// The prober of a cluster of which no client can be made: it says so each time, and the
/// thresholds decide what becomes of that.
#[derive(Clone, Debug)]
pub struct Misconfigured {
    /// What is wrong; its verdict is [`health::Verdict::Config`], or it is [`Code::OwnLimit`] for
    /// as long as nobody could read how to reach the cluster, which changes nothing.
    pub code: Code,
    /// Which object, and which field or key of it. No secret.
    pub detail: Box<str>,
}

impl ClusterProber for Misconfigured {
    fn probe(&self, _: Duration) -> BoxFuture<'_, Report> {
        let report = Report {
            finding: Finding::failed(self.code, ProbePath::Readyz),
            started: now(),
            took: Duration::ZERO,
            attempts: 0,
            endpoints: Endpoints::default(),
            detail: Some(self.detail.clone()),
        };
        Box::pin(std::future::ready(report))
    }
}
