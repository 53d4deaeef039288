//! How one Cluster is probed.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::{Code, Finding, Report};
use probe::Order;

use super::cluster_states::ClusterStates;
use crate::engine::{Cluster, ClusterProber, Contact};
use crate::tke::TkeOptions;

/// Probes one Cluster: its health, then that it takes our credential for a read.
pub(crate) struct MemberProber {
    pub(crate) prober: Arc<probe::Prober>,
    pub(crate) client: Arc<probe::Client>,
    pub(crate) states: Arc<ClusterStates>,
    pub(crate) cluster: Cluster,
    pub(crate) options: Arc<TkeOptions>,
}

impl ClusterProber for MemberProber {
    fn probe(&self, budget: Duration) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let newest = || self.states.client(&self.cluster);
            let order = Order {
                budget,
                authenticated_read: true,
                next_in: self.options.policy.cadence.period,
                newest: &newest,
                reread: None,
            };
            let mut report = self.prober.probe(&self.client, &order).await.report;
            let finding = report.finding;
            let enough_nodes = self.states.known(&self.cluster, |entry| {
                // rule:what-we-could-not-ask-changes-nothing
                if !finding.is_void() {
                    entry.answers = finding.is_ok();
                }
                entry.facts.enough_nodes
            });
            if self.options.ready_requires_nodes {
                report.finding = judged(finding, enough_nodes.flatten());
            }
            report
        })
    }

    fn contact(&self) -> Contact {
        Contact::from(&*self.client)
    }
}

/// What it comes to with the Nodes that the cluster has to have; nobody knows yet of one that was
/// never listed.
fn judged(finding: Finding, enough_nodes: Option<bool>) -> Finding {
    if finding.is_ok() && enough_nodes == Some(false) {
        return Finding::failed(Code::NodesNotReady, finding.path());
    }
    finding
}

#[cfg(test)]
mod tests {
    use health::ProbePath;

    use super::*;

    /// rule:required-nodes-are-counted-with-each-probe
    #[test]
    fn a_cluster_that_answers_fails_while_it_has_too_few_nodes() {
        let path = ProbePath::Namespaces;
        let (well, lost) = (Finding::ok(path), Finding::failed(Code::Timeout, path));
        for (finding, enough, code) in [
            (well, None, None),
            (well, Some(true), None),
            (well, Some(false), Some(Code::NodesNotReady)),
            (lost, Some(false), Some(Code::Timeout)),
        ] {
            assert_eq!(judged(finding, enough).code(), code, "{enough:?}");
        }
    }
}
