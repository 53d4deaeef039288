//! How one Cluster is probed.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::{Code, Finding, Report};
use probe::Order;

use super::book::Book;
use super::facts::enough;
use super::options::TkeOptions;
use crate::engine::{Cluster, Contact, Prober};

/// Probes one Cluster: its health, then that it takes our credential for a read.
pub(crate) struct MemberProber {
    pub(crate) shared: Arc<probe::Prober>,
    pub(crate) client: Arc<probe::Client>,
    pub(crate) book: Arc<Book>,
    pub(crate) cluster: Cluster,
    pub(crate) options: Arc<TkeOptions>,
}

impl Prober for MemberProber {
    fn probe(&self, budget: Duration) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let newest = || self.book.client(&self.cluster);
            let order = Order {
                budget,
                authenticated_read: true,
                next_in: self.options.policy.cadence.period,
                newest: &newest,
            };
            let mut report = self.shared.probe(&self.client, &order).await.report;
            let answers = report.finding.is_ok();
            let nodes = self.book.known(&self.cluster, |entry| {
                entry.answers = answers;
                entry.facts.nodes
            });
            let ratio = self.options.nodes_ready_min_ratio;
            let too_few = nodes.flatten().is_some_and(|counts| !enough(counts, ratio));
            if answers && too_few && self.options.ready_requires_nodes {
                report.finding = Finding::failed(Code::NodesNotReady, report.finding.path());
            }
            report
        })
    }

    fn contact(&self) -> Contact {
        Contact::from(&*self.client)
    }
}
